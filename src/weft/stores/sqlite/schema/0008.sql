-- Blobs whose content refers to other blobs. A blob stays as long as one that refers to it.

CREATE TABLE blob_links (
    parent TEXT NOT NULL,
    child  TEXT NOT NULL,
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_links_child ON blob_links (child);

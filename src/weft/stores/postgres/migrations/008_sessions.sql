-- The session in which a host's heart beats, if it has one of its own. It ends with its process, which shows before a
-- lease is over.
ALTER TABLE hosts ADD COLUMN session integer;

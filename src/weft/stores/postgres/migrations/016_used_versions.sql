-- When a version was last put again. One that nothing names is deleted some time after that.
ALTER TABLE definitions ADD COLUMN used_at bigint NOT NULL DEFAULT 0;

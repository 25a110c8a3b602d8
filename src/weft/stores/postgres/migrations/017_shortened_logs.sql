-- How many events at the beginning of the log were deleted. Only logs of schedules are shortened.
ALTER TABLE runs ADD COLUMN cut bigint NOT NULL DEFAULT 0;

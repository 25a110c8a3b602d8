-- The session of a host's heartbeat, if it has its own. It ends with its process, so that others notice before the lease
-- is over.
ALTER TABLE hosts ADD COLUMN session integer;

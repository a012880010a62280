-- The states are those of EndpointState. In 2 the table serves, and writes are recorded in the dirty log; in 3 it is frozen,
-- and writes fail. In the other states the table has another name, which only the migration's worker knows.
CREATE TRIGGER {trigger} AFTER {event} ON {table} FOR EACH ROW
BEGIN
  DECLARE current_state TINYINT UNSIGNED;
  SELECT state INTO current_state FROM {state} WHERE one = 1 LOCK IN SHARE MODE;
  IF current_state = 2 THEN
    {record}
  ELSEIF current_state = 3 THEN
    SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1644, MESSAGE_TEXT = '{frozen}';
  END IF;
END

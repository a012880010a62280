-- States are those of EndpointState: 2 serves, and what is written is recorded; 3 is frozen. In the others only the
-- migration's worker finds the table, which has another name then.
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

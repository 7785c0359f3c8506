-- The work in a record may name several questions whose end is still to be told. An aop that knows one only would take
-- such a record for damage: the number of this step tells it that it is too old.
SELECT 1;

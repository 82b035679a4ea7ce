-- Only PostgreSQL is used by several workers at once; the numbers of both stay alike.
SELECT 1;

-- Fencing in PostgreSQL (12 and later): only transactions with the newest token of a lock commit
-- what they write.  docs/FENCING.md explains it.
--
--   psql -f fence.sql mydb                                  once, as the owner of the tables
--   SELECT fence_table('orders', 'billing');                writes to it need a token of that lock
--
-- The application is not changed: libpq, and what is built on it, takes the token from PGOPTIONS.
--
--   conclave lock billing -- sh -c \
--     'PGOPTIONS="-c conclave.token=$CONCLAVE_TOKEN" exec my-program'
--
-- Without triggers a transaction shows its token itself, at any time before it commits:
--
--   BEGIN; SELECT fence('billing', 4294967311); UPDATE orders ...; COMMIT;

BEGIN;

CREATE TABLE IF NOT EXISTS fence_token (
    lock  text PRIMARY KEY,
    token bigint NOT NULL  -- the newest that a committed transaction has shown
);

-- Takes a lock on the row until the transaction ends: one with a newer token waits for it, and one
-- with an older token finds the newer when its turn has come.
CREATE OR REPLACE FUNCTION fence(of_lock text, with_token bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    newest bigint;
BEGIN
    IF of_lock IS NULL OR with_token IS NULL OR with_token < 1 THEN
        RAISE EXCEPTION 'only the holder of the lock % may write here: show its token', of_lock
            USING ERRCODE = 'CV002', HINT = 'PGOPTIONS="-c conclave.token=$CONCLAVE_TOKEN"';
    END IF;
    SELECT token INTO newest FROM fence_token WHERE lock = of_lock FOR UPDATE;
    IF newest = with_token THEN
        RETURN;
    END IF;
    INSERT INTO fence_token AS known (lock, token) VALUES (of_lock, with_token)
        ON CONFLICT (lock) DO UPDATE SET token = excluded.token WHERE known.token <= excluded.token;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'token % is older than another that was shown: its holder has lost the lock %',
            with_token, of_lock USING ERRCODE = 'CV001';
    END IF;
END $$;

CREATE OR REPLACE FUNCTION fence_guard() RETURNS trigger
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM fence(TG_ARGV[0], nullif(current_setting('conclave.token', true), '')::bigint);
    RETURN NULL;
END $$;

-- Statements that change this table need a token of this lock from now on.
CREATE OR REPLACE FUNCTION fence_table(of_table regclass, of_lock text) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    EXECUTE format('DROP TRIGGER IF EXISTS a_fence ON %s', of_table);
    EXECUTE format('CREATE TRIGGER a_fence BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON %s '
                   'FOR EACH STATEMENT EXECUTE FUNCTION fence_guard(%L)', of_table, of_lock);
END $$;

COMMIT;

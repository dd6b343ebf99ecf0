"""How long a test waits for what has to come."""
import os

# Seconds.  Far more than anything needs: a test may take long on a machine that is busy with something else, but
# does not fail there.  What must not come needs another way to show it than a wait.
TIMEOUT_S = int(os.environ.get("PATIENCE", "300"))

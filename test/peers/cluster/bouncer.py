"""What kill.py plays, through pgbouncer in transaction mode."""

import sys

sys.dont_write_bytecode = True
import kill  # noqa: E402
import world  # noqa: E402


def bouncer():
    with world.World(database="bouncer") as w:
        return kill.play(w, world.rounds())


if __name__ == "__main__":
    sys.exit(world.main(bouncer))

"""The postmaster is killed, and started again some seconds later, with runs under way: shorter than a lease,
then longer. Runs wait and go on, nothing is lost; a run that is posted meanwhile is refused with 503, or
accepted when the database is back, and not before."""

import sys
import threading
import time

sys.dont_write_bytecode = True
import world  # noqa: E402
from world import LEASE, World  # noqa: E402

RUNS = 12
PAUSES = (2, LEASE + 3)
ACCEPTED, REFUSED = 201, 503


class Asking(threading.Thread):
    """Somebody who posts a run and waits for the answer."""

    def __init__(self, w, marker):
        super().__init__(daemon=True)
        self.w, self.marker, self.status, self.at = w, marker, None, 0
        self.start()

    def run(self):
        try:
            self.status = self.w.ask(self.w.machines[0], self.marker, world.PATIENCE)[0]
        except OSError as e:
            self.status = str(e)
        self.at = time.monotonic()


def play(w, n, pause):
    runs = w.spawn(RUNS)
    w.wait_asked(runs)
    w.database.kill()
    asking = Asking(w, f"meanwhile-{n}")
    time.sleep(pause)  # what is played is that it is down so long
    back = time.monotonic()
    w.database.start()
    asking.join()
    w.wait_over(list(w.accepted))
    print(f"# down for {pause} s: a run was answered with {asking.status} {asking.at - back:+.1f} s around its return, and "
          f"all had ended {time.monotonic() - back:.1f} s after it", flush=True)
    wrong = []
    if asking.status not in (ACCEPTED, REFUSED) or asking.status == ACCEPTED and asking.at < back:
        wrong.append(f"a run that was posted while it was down: {asking.status}")
    w.wait_over(w.spawn(3))
    return wrong + w.judge()


def database():
    with World() as w:
        return [s for n in range(world.rounds()) for i, pause in enumerate(PAUSES)
                for s in play(w, f"{n}-{i}", pause)]


if __name__ == "__main__":
    sys.exit(world.main(database))

"""The examples, as programs."""

import os
import re
import subprocess
import sys

import world
from world import EXAMPLES, PATIENCE_S, TASK, World


class Examples(World):
    def example(self, name, *args, code=0, text=None):
        how = "embedded" if world.MODE == "embedded" else "connect"
        done = subprocess.run([sys.executable, "-X", "dev", os.path.join(EXAMPLES, name + ".py"), how, self.root, *args],
                              input=text, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (code, ""))
        return done.stdout

    def test_spawn_and_wait(self):
        said = self.example("spawn_and_wait", TASK, self.work)
        self.assertIn(": success after", said)
        self.assertIn("notes.md", said)

    def test_progress(self):
        said = self.example("progress", TASK, self.work)
        self.assertIn("calls search_codebase", said)
        self.assertIn("Reading notes.md", said)
        self.assertIn("[" + "#" * 30 + "]", said)

    def test_own_loop(self):
        said = self.example("own_loop", self.work, text=TASK + "\nwhat is a whole record?\n")
        self.assertEqual(said.count(" success: "), 2)
        self.assertEqual(said.count(" result S-"), 2)

    def test_go_on(self):
        said = self.example("go_on", TASK, self.work)
        self.assertIn(": iterations_exceeded after 1 calls", said)
        self.assertIn("replays identically", said)
        self.assertIn("Proceed?", said)
        self.assertIn(": success after", said)

    def test_thousand(self):
        """A thousand runs take no more of this process than a few hundred bytes each, and what the runtime needs."""
        said = self.example("thousand", "1000", self.work)
        self.assertIn("1000 started, 1000 ended, 1000 with success", said)
        most = int(said.split(" MB at the most")[0].split()[-1])
        self.assertLess(most, 120)
        print(f"# {world.MODE}: {said.splitlines()[-1]}")

    def test_readme(self):
        """The programs of README.md, as they stand there."""
        with open(os.path.join(os.path.dirname(world.EXAMPLES), "README.md"), encoding="utf-8") as f:
            programs = re.findall(r"```python\n(.*?)```", f.read(), re.S)
        self.assertEqual(len(programs), 3)
        program = "\n".join(programs)
        if world.MODE == "embedded":
            program = program.replace("ava.open()", f"ava.embed({self.root!r})")
        done = subprocess.run([sys.executable, "-X", "dev", "-c", program], input="yes\n", capture_output=True, text=True,
                              cwd=self.work, env={**os.environ, "AVA_DATA_ROOT": self.root}, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^result S-[0-9a-f]+ .*\nsuccess .*")
        self.assertEqual(len(re.findall(r"(?m)^S-[0-9a-f]+ ", done.stdout)), 2)

    def test_says_what_is_wrong(self):
        done = subprocess.run([sys.executable, os.path.join(EXAMPLES, "spawn_and_wait.py"), "embedded", self.root,
                               TASK, "/nowhere/at/all"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^spawn_and_wait: .*/nowhere/at/all.*\n$")

"""The calls, one by one."""

import copy
import os
import pickle
import subprocess
import sys
import typing

import ava
import world
from ava import _shapes
from ava._errors import KINDS, ffi, lib, text
from world import PATIENCE_S, World


class Header(World):
    """What Python says of the header is what the header says: nothing of it is missing."""

    PAIRS = {"struct ava_run": ava.RunStatus, "struct ava_result": ava.Result, "struct ava_group": ava.Group,
             "struct ava_difference": ava.Difference, "struct ava_replay": ava.Replay,
             "struct ava_session": ava.SessionStatus, "struct ava_event": ava.Event,
             "struct ava_proposal": ava.Proposal, "struct ava_spawn": ava.SpawnOptions,
             "struct ava_spawn_group": ava.GroupOptions, "struct ava_resume": ava.ResumeOptions}
    OTHER = {"len", "nruns", "ndifferences", "task", "runs"}  # lengths, and what is an argument of its own

    def test_fields(self):
        for struct, cls in self.PAIRS.items():
            here = {name.rstrip("_") for name in cls.__annotations__ if not name.startswith("_")}
            here = {{"from_call": "from", "group_id": "group"}.get(name, name) for name in here}
            there = {name for name, _ in ffi.typeof(struct).fields}
            there -= {"n" + name for name in there} | self.OTHER
            self.assertEqual(here - self.OTHER, there, struct)

    def test_statuses(self):
        words = [text(lib.ava_status_name(i)) for i in range(lib.AVA_NSTATUSES)]
        self.assertEqual(words, list(typing.get_args(ava.Status)))
        self.assertEqual([_shapes.STATES.index(w) for w in ("pending", "confirmed", "rejected", "expired")],
                         [lib.AVA_PENDING, lib.AVA_CONFIRMED, lib.AVA_REJECTED, lib.AVA_EXPIRED])

    def test_codes(self):
        names = [name for name in dir(lib) if name.startswith("AVA_E") and isinstance(getattr(lib, name), int)
                 and getattr(lib, name) < 0]
        self.assertGreaterEqual(len(names), 21)
        for name in names:
            error = KINDS.get(getattr(lib, name), ava.Error)(getattr(lib, name))
            self.assertNotEqual(error.code, "unknown" if name != "AVA_EUNKNOWN" else "")
            self.assertTrue(str(error))
            again = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(again), again.code, str(again)), (type(error), error.code, str(error)))
        self.assertEqual(ava.Error(lib.AVA_ENOENT).code, "not_found")

    def test_every_call_is_declared(self):
        for name in ("ava_log_verify", "ava_trace_otlp", "ava_checkpoint_read", "ava_item"):
            self.assertTrue(hasattr(lib, name))


class Calls(World):
    def test_a_run(self):
        with self.open() as rt:
            run = self.spawn(rt, tags=["kettle"], output_schema=None)
            result = run.wait(PATIENCE_S)
            self.assertEqual((result.status, result.run), ("success", run.id))
            self.assertEqual(result.output["findings"][0]["path"], "notes.md")
            self.assertEqual(result.json["output"], result.output)
            now = run.status()
            self.assertEqual((now.status, now.ended, now.task, now.cwd), ("success", True, world.TASK, self.work))
            self.assertTrue(run.done())
            self.assertEqual([r.id for r in rt.runs(all=True)], [run.id])
            self.assertEqual(rt.runs(), [])
            self.assertEqual(run, rt.run(run.id))
            self.assertEqual(len({run, rt.run(run.id)}), 1)
            self.assertEqual(copy.copy(run), run)

    def test_errors(self):
        with self.open() as rt:
            with self.assertRaises(ava.NotFoundError) as caught:
                rt.run("S-000000").status()
            self.assertEqual(caught.exception.code, "not_found")
            self.assertIn("S-000000", str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))
            with self.assertRaises(LookupError):
                rt.run("S-000000").events()
            with self.assertRaises(LookupError):
                rt.run("S-000000").wait()
            with self.assertRaises(ValueError):
                rt.spawn("")
            with self.assertRaisesRegex(ValueError, "NUL"):
                rt.spawn("a\0b")
            with self.assertRaisesRegex(TypeError, "no option 'rolle'"):
                rt.spawn("task", rolle="researcher")
            with self.assertRaisesRegex(ava.InvalidError, "too big"):
                rt.spawn("task", timeout_ms=1 << 70)
            for wrong in (1.5, "1 s"):
                with self.assertRaises(TypeError):
                    rt.spawn("task", timeout_ms=wrong)
            for wrong in ({"tools": "read_file"}, {"tools": [1]}, {"tools": 1}, {"role": 1}, {"role": ["x"]}, {"ntools": "x"}):
                with self.assertRaises(TypeError):
                    rt.spawn("task", **wrong)
            for call in (lambda: rt.run(7).status(), lambda: rt.run("S-1").steer(7), lambda: rt.session(None).say("x")):
                with self.assertRaises((TypeError, ValueError, LookupError)):
                    call()
            with self.assertRaises(ava.InvalidError):
                rt.wait([])
            with self.assertRaises(ava.NotFoundError):
                rt.spawn("task", cwd="/nowhere/at/all")
            self.assertEqual(rt.runs(), [])

    def test_cancel_and_time_out(self):
        with self.open() as rt:
            run = self.spawn(rt, self.slow)
            with self.assertRaises(TimeoutError) as caught:
                run.wait(0.05)
            self.assertIsInstance(caught.exception, ava.Error)
            self.assertFalse(run.done())
            run.cancel()
            run.cancel()
            self.assertEqual(run.wait(PATIENCE_S).status, "cancelled")

    def test_pause(self):
        with self.open() as rt:
            run = self.spawn(rt, self.slow)
            run.pause("2h")
            run.unpause()
            run.pause()
            with self.assertRaises(ava.Error):
                run.pause("2h")
            run.cancel()

    def test_same_request(self):
        with self.open() as rt:
            one = self.spawn(rt, request_id="kettle-1")
            self.assertEqual(self.spawn(rt, request_id="kettle-1"), one)
            one.wait(PATIENCE_S)

    def test_proposals(self):
        with self.open() as rt:
            quote = rt.propose(world.TASK, role="code_reviewer", cwd=self.work, confirm="always")
            self.assertEqual((quote.state, quote.run), ("pending", None))
            self.assertIn("Proceed?", quote.message)
            self.assertEqual(quote.config["role"], "code_reviewer")
            self.assertIn("costCents", quote.quote)
            self.assertEqual([p.id for p in rt.proposals()], [quote.id])
            other = quote.confirm("with 200 cents")
            self.assertEqual((other.state, other.replaces), ("pending", quote.id))
            yes = other.confirm()
            self.assertEqual(yes.state, "confirmed")
            self.assertEqual(yes.run.wait(PATIENCE_S).status, "success")
            no = rt.propose(world.TASK, role="code_reviewer", cwd=self.work, confirm="always").reject("too dear")
            self.assertEqual(no.state, "rejected")
            with self.assertRaises(ava.Error) as caught:
                no.confirm()
            self.assertEqual(caught.exception.code, "rejected")

    def test_group(self):
        with self.open() as rt:
            quote = rt.propose_group([{"task": world.TASK, "role": "code_reviewer"},
                                      {"task": "what is a whole record?", "role": "code_reviewer"}],
                                     cwd=self.work, confirm="always").confirm()
            runs = [rt.run(r.id) for r in quote.group().runs]
            self.assertEqual(len(runs), 2)
            self.assertEqual(set(rt.wait(runs, PATIENCE_S)), set(runs))
            group = quote.group()
            self.assertEqual((group.size, group.ended, group.succeeded, group.running), (2, 2, 2, False))

    def test_resume_replay_checkpoint(self):
        with self.open() as rt:
            run = self.spawn(rt, max_iterations=1)
            self.assertEqual(run.wait(PATIENCE_S).status, "iterations_exceeded")
            replay = run.replay()
            self.assertTrue(replay.identical and replay.complete and replay.events > 5)
            more = run.resume(max_iterations=20, confirm="always").confirm().run
            self.assertEqual(more.wait(PATIENCE_S).status, "success")
            with self.assertRaises(ava.Error) as caught:
                more.checkpoint("late")
            self.assertEqual(caught.exception.code, "exists")
            self.assertEqual(run.resume(from_call=1, confirm="always").state, "pending")

    def test_steer(self):
        with self.open() as rt:
            run = self.spawn(rt, self.slow)
            run.steer("hurry", request_id="once")
            run.steer("hurry", request_id="once")
            run.checkpoint("here")
            with self.assertRaises(ava.NotFoundError):
                run.steer("yes", call="c9.9")
            self.assertEqual(rt.cancel_all(), 1)

    def test_session(self):
        with self.open() as rt:
            talk = rt.new_session(cwd=self.work)
            items = talk.items()
            entry = talk.say("hello")
            self.assertTrue(entry)
            said = []
            for item in items:
                said.append((item["kind"], item["detail"].get("by")))
                if said[-1] == ("said", "ava"):
                    break
            self.assertEqual(said[0][0], "said")
            self.assertGreaterEqual(len(talk.entries()), 2)
            self.assertTrue(all(line["id"] != entry for line in talk.entries(after=entry)))
            self.assertEqual([s.id for s in rt.sessions()], [talk.id])
            talk.stop()

    def test_log_lines(self):
        if world.MODE != "embedded":
            self.skipTest("the daemon has its log itself")
        lines = []
        os.mkdir(self.root, 0o700)
        with open(os.path.join(self.root, "learned.json"), "w", encoding="utf-8") as f:
            f.write("damaged")
        with ava.embed(self.root, log=lines.append):
            pass
        self.assertRegex("\n".join(lines), "learned.json .* is damaged")

    def test_environment(self):
        if world.MODE != "embedded":
            self.skipTest("the daemon has its own")
        more = {f"KETTLE_{i}": "x" * 50 for i in range(500)}
        with self.assertRaisesRegex(ava.Error, "AVA_RUNS_MAX"):
            ava.embed(self.root, env={**more, "AVA_RUNS_MAX": "many"})
        with ava.embed(self.root, env={"AVA_RUNS_MAX": "3"}) as rt:
            with self.assertRaises(ava.Error) as caught:
                ava.embed(self.root + "2")
            self.assertEqual(caught.exception.code, "busy")
            self.assertEqual(rt.runs(), [])

    def test_nobody_serves(self):
        with self.assertRaises(ava.NotFoundError):
            ava.open(self.root, start=False)
        os.mkdir(self.root, 0o700)
        with self.assertRaises(ConnectionError) as caught:
            ava.open(self.root, start=False)
        self.assertIsInstance(caught.exception, ava.UnreachableError)

    def test_no_library(self):
        env = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
        done = subprocess.run([sys.executable, "-c", "import ava"], env=env, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            self.skipTest("the system has the library")
        self.assertIn("install ava's library", done.stderr)

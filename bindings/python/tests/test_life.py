"""Threads, signals, forks, ends: an exception at the worst, never a crash."""

import asyncio
import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings

import ava
import world
from world import PATIENCE_S, TASK, World, end_daemon, until


def fds():
    return len(os.listdir("/proc/self/fd"))


class Streams(World):
    def test_items_and_events(self):
        with self.open() as rt:
            run = self.spawn(rt)
            items = list(run.items())
            kinds = [item["kind"] for item in items]
            self.assertEqual((kinds[0], kinds[-1]), ("started", "result"))
            self.assertIn("doing", kinds)
            self.assertIn("notes.md", items[-1]["text"])
            events = list(run.events())
            self.assertEqual(events[-1].type, "SubagentComplete")
            self.assertTrue(all(a.lsn < b.lsn for a, b in zip(events, events[1:])))
            self.assertEqual([e.lsn for e in run.events(after=events[2].lsn)], [e.lsn for e in events[3:]])
            self.assertEqual(events[-1].content()["status"], "success")

    def test_a_slow_reader_misses_nothing(self):
        """More events than the queue holds: the stream pauses, and goes on where it was."""
        from ava import _runtime
        most, _runtime.QUEUE_MOST = _runtime.QUEUE_MOST, 3
        self.addCleanup(setattr, _runtime, "QUEUE_MOST", most)
        with self.open() as rt:
            slow = rt.events()
            runs = [self.spawn(rt) for _ in range(3)]
            rt.wait(runs, PATIENCE_S)
            wanted = [event.lsn for run in runs for event in run.events()]
            self.assertGreater(len(wanted), 20)
            got = []
            while len(set(wanted) - set(got)):
                got.append(next(slow).lsn)
                self.assertLessEqual(len(slow._feed.queue), 3)
            self.assertEqual(got, sorted(set(got)))

    def test_interrupted_within_a_callback(self):
        """^C that comes while an event is taken: the wait raises it, and the stream misses nothing."""
        from ava import _runtime, _turns
        real = {_runtime.Feed: ("event", _runtime.Feed.event), _turns.Ends: ("ended", _turns.Ends.ended)}
        at, calls = [], []

        def interrupted(self, arg):
            calls.append(arg)
            if len(calls) in at[:2]:
                raise KeyboardInterrupt
            real[type(self)][1](self, arg)
            if len(calls) in at[2:]:
                raise KeyboardInterrupt

        for cls, (name, function) in real.items():
            setattr(cls, name, interrupted)
            self.addCleanup(setattr, cls, name, function)
        with self.open() as rt:
            for of_all in (True, False):
                stream = rt.events() if of_all else None
                run = self.spawn(rt)
                stream = stream or run.events()
                got, interrupts = [], 0
                calls.clear()
                at[:] = 1, 5, 9
                while not got or got[-1].type != "SubagentComplete":
                    try:
                        got.append(next(stream))
                    except KeyboardInterrupt:
                        interrupts += 1
                at.clear()
                stream.close()
                self.assertGreater(interrupts, 0)
                wanted = [e.lsn for e in run.events()]
                self.assertEqual([e.lsn for e in got if e.agent == run.id], wanted)
                self.assertEqual([e.lsn for e in got], sorted({e.lsn for e in got}))
            run = self.spawn(rt, self.script("soon", '{"text":"soon","delay_ms":300}\n'))
            calls.clear()
            at[:] = 1, 1
            with self.assertRaises(KeyboardInterrupt):
                run.wait(PATIENCE_S)

    def test_leaving_a_loop(self):
        with self.open() as rt:
            run = self.spawn(rt)
            run.wait(PATIENCE_S)
            for _ in range(20):
                for _ in run.items():
                    break
            gc.collect()
            rt.runs()
            self.assertEqual(len(rt._turns.watches), 0)
            with run.items() as items:
                next(items)
            with self.assertRaises(StopIteration):
                next(items)

    def test_asyncio(self):
        async def follow(run):
            kinds = [item["kind"] async for item in run.items()]
            result = await run.result()
            return kinds[0], kinds[-1], result.status

        async def main(rt):
            ticks = 0
            runs = [self.spawn(rt) for _ in range(20)]
            late = self.spawn(rt, self.slow)
            tasks = [asyncio.create_task(follow(run)) for run in runs]
            while not all(task.done() for task in tasks):
                await asyncio.sleep(0.005)
                ticks += 1  # the loop is not held up
            self.assertEqual({task.result() for task in tasks}, {("started", "result", "success")})
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(late.result(), 0.05)
            waiting = asyncio.create_task(late.result())
            await asyncio.sleep(0)
            late.cancel()
            self.assertEqual((await waiting).status, "cancelled")
            self.assertGreater(ticks, 0)

        with self.open() as rt:
            asyncio.run(main(rt))
            asyncio.run(main(rt))  # another loop
            self.assertEqual(rt._turns.drivers, {})
            self.assertEqual(threading.active_count(), 1)

    def test_a_loop_sleeps(self):
        """Nothing turns while a run does not: of the processor next to nothing is used."""
        async def main(rt):
            late = self.spawn(rt, self.slow)
            stream = late.items()
            await anext(stream)
            began, cpu = time.monotonic(), time.process_time()
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(late.result(), 0.3)
            self.assertLess(time.process_time() - cpu, 0.5 * (time.monotonic() - began))
            late.cancel()

        with self.open() as rt:
            asyncio.run(main(rt))

    def test_a_closed_loop(self):
        """A loop that ended with a task that waits keeps nobody else from waiting."""
        with self.open() as rt:
            late = self.spawn(rt, self.slow)
            loop = asyncio.new_event_loop()
            task = loop.create_task(late.result())
            loop.run_until_complete(asyncio.sleep(0.01))
            task.cancel()
            loop.set_exception_handler(lambda *_: None)  # it says that a task was left
            loop.close()
            late.cancel()
            self.assertEqual(late.wait(PATIENCE_S).status, "cancelled")


class Threads(World):
    def test_many_threads(self):
        results = []

        def work(rt):
            run = self.spawn(rt)
            kinds = [item["kind"] for item in run.items()]
            results.append((kinds[-1], run.wait(PATIENCE_S).status))

        with self.open() as rt:
            threads = [threading.Thread(target=work, args=(rt,)) for _ in range(12)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE_S)
        self.assertEqual(results, [("result", "success")] * 12)

    def test_cancel_beside_a_wait(self):
        with self.open() as rt:
            run = self.spawn(rt, self.slow)
            got = []
            threads = [threading.Thread(target=lambda: got.append(run.wait(PATIENCE_S).status)) for _ in range(3)]
            for thread in threads:
                thread.start()
            until(lambda: len(rt._turns.ends.missing.get(run.id, ())) == 3)
            run.cancel()
            for thread in threads:
                thread.join(PATIENCE_S)
            self.assertEqual(got, ["cancelled"] * 3)

    def test_close_beside_a_wait(self):
        rt = self.open()
        run = self.spawn(rt, self.slow)
        got = []

        def work():
            try:
                run.wait()
            except ava.ClosedError as error:
                got.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        until(lambda: rt._turns.leading)
        rt.close()
        thread.join(PATIENCE_S)
        self.assertEqual(got, ["the runtime is closed"])
        if world.MODE == "connected":
            with self.open() as rt:
                rt.cancel_all()

    def test_loop_and_thread(self):
        """A loop and a blocking thread wait for the same run."""
        got = []

        async def main(run):
            waiting = asyncio.create_task(run.result())
            await asyncio.sleep(0.05)
            await asyncio.get_running_loop().run_in_executor(None, run.cancel)
            return (await waiting).status

        with self.open() as rt:
            run = self.spawn(rt, self.slow)
            thread = threading.Thread(target=lambda: got.append(run.wait(PATIENCE_S).status))
            thread.start()
            self.assertEqual(asyncio.run(main(run)), "cancelled")
            thread.join(PATIENCE_S)
            self.assertEqual(got, ["cancelled"])


class Ends(World):
    def test_after_close(self):
        rt = self.open()
        run = self.spawn(rt)
        items = run.items()
        quote = rt.propose(TASK, role="code_reviewer", cwd=self.work, confirm="always")
        run.wait(PATIENCE_S)
        rt.close()
        rt.close()
        for call in (run.status, run.wait, run.cancel, run.events, rt.runs, rt.process, quote.confirm,
                     lambda: rt.spawn("task"), lambda: list(items), lambda: asyncio.run(run.result())):
            with self.assertRaises(ava.ClosedError):
                call()
        items.close()
        with self.open() as rt:  # the root is free again, and knows the run
            self.assertEqual(rt.run(run.id).wait().status, "success")

    def test_dropped(self):
        """What nobody refers to is closed, with a warning, and no descriptor is left."""
        gc.collect()
        before = fds()
        for _ in range(5):
            rt = ava.embed(self.root, process_env=True) if world.MODE == "embedded" else ava.open(self.root)
            run = self.spawn(rt)
            stream = run.events()
            next(stream)
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                del rt, run, stream
                gc.collect()
            self.assertEqual([w.category for w in seen], [ResourceWarning])
        self.assertEqual(fds(), before)

    def test_memory(self):
        """Calls, streams and waits keep nothing."""
        def once():
            for _ in range(20):
                run.status(), rt.runs(all=True), run.wait(), list(run.items()), list(run.events())
                quote = rt.propose(TASK, role="code_reviewer", cwd=self.work, confirm="always")
                quote.reject()

        def resident():
            with open("/proc/self/statm", encoding="ascii") as f:
                return int(f.read().split()[1]) * resource.getpagesize()

        with self.open() as rt:
            run = self.spawn(rt)
            run.wait(PATIENCE_S)
            once()
            once()
            before, objects = resident(), len(gc.get_objects())
            for _ in range(5):
                once()
            gc.collect()
            self.assertLess(resident() - before, 6 << 20)
            self.assertLess(len(gc.get_objects()) - objects, 500)

    def test_ctrl_c(self):
        for wait in ("run.wait()", "next(s for s in iter(lambda: next(items), None) if s['kind'] == 'result')",
                     "asyncio.run(run.result())", "rt.wait([run])"):
            child = self.program(
                "import asyncio\n"
                "with open_() as rt:\n"
                "    run = rt.spawn('x', role='code_reviewer', cwd=WORK, model=SLOW)\n"
                "    items = run.items()\n"
                "    next(items)\n"
                "    try:\n"
                "        threading.Timer(0.05, lambda: print('waits', flush=True)).start()\n"
                f"        {wait}\n"
                "    except KeyboardInterrupt:\n"
                "        run.cancel()\n"
                "        print('interrupted', run.wait().status, flush=True)\n")
            self.assertEqual(child.stdout.readline(), "waits\n")
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=PATIENCE_S)
            self.assertEqual((child.returncode, out, err), (0, "interrupted cancelled\n", ""), wait)

    def test_signal_handler_cancels(self):
        out, _ = self.says(
            "with open_() as rt:\n"
            "    run = rt.spawn('x', role='code_reviewer', cwd=WORK, model=SLOW)\n"
            "    signal.signal(signal.SIGALRM, lambda *_: run.cancel())\n"
            "    signal.setitimer(signal.ITIMER_REAL, 0.3)\n"
            "    print(run.wait().status)\n")
        self.assertEqual(out, "cancelled\n")

    def test_many_signals(self):
        """A handler that uses the runtime at any time is served or refused, and nothing stands still."""
        out, _ = self.says(
            "served = refused = 0\n"
            "def handler(*_):\n"
            "    global served, refused\n"
            "    try:\n"
            "        rt.runs(); served += 1\n"
            "    except ava.Error as error:\n"
            "        assert error.code == 'busy', error\n"
            "        refused += 1\n"
            "    signal.setitimer(signal.ITIMER_REAL, 0.003)\n"
            "rt = open_()\n"
            "signal.signal(signal.SIGALRM, handler)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.001)\n"
            "for _ in range(30):\n"
            "    run = rt.spawn('where is the torn tail cut?', role='code_reviewer', cwd=WORK)\n"
            "    assert [i['kind'] for i in run.items()][-1] == 'result'\n"
            "    assert run.wait().status == 'success'\n"
            "signal.signal(signal.SIGALRM, signal.SIG_IGN)\n"
            "print('served', served > 0)\n")
        self.assertEqual(out, "served True\n")

    def test_fork(self):
        out, _ = self.says(
            "with open_() as rt:\n"
            "    run = rt.spawn('where is the torn tail cut?', role='code_reviewer', cwd=WORK)\n"
            "    items = run.items()\n"
            "    pid = os.fork()\n"
            "    if pid == 0:\n"
            "        for call in (run.status, run.wait, lambda: next(items)):\n"
            "            try:\n"
            "                call()\n"
            "            except ava.ClosedError as error:\n"
            "                assert 'process' in str(error)\n"
            "            else:\n"
            "                os._exit(3)\n"
            "        rt.close()\n"
            "        del rt, run, items\n"
            "        sys.exit(0)\n"
            "    assert os.waitpid(pid, 0)[1] == 0\n"
            "    print(run.wait().status)\n")
        self.assertEqual(out, "success\n")

    def test_exit(self):
        """The end of the interpreter, with all open and a thread that waits."""
        out, err = self.says(
            "rt = open_()\n"
            "run = rt.spawn('x', role='code_reviewer', cwd=WORK, model=SLOW)\n"
            "items = run.items(); next(items)\n"
            "threading.Thread(target=run.wait, daemon=True).start()\n"
            "time.sleep(0.1)\n"
            "print('ends')\n")
        self.assertEqual(out, "ends\n")
        self.assertNotIn("Fatal", err)
        with self.open() as rt:  # accepted work was on disk
            self.assertEqual(len(rt.runs(all=True)), 1)
            rt.cancel_all()

    def test_within_a_call(self):
        """What comes within a call of the same thread is refused, and the call goes on."""
        with self.open() as rt:
            with rt._turns.use():
                for call in (rt.runs, rt.close):
                    with self.assertRaises(ava.Error) as caught:
                        call()
                    self.assertEqual(caught.exception.code, "busy")
            self.assertEqual(rt.runs(), [])

    def test_interrupted_call(self):
        """A ^C at the end of a call leaves no call behind."""
        with self.open() as rt:
            def interrupted() -> None:
                raise KeyboardInterrupt

            rt._turns.settle = interrupted
            with self.assertRaises(KeyboardInterrupt):
                rt.runs()
            del rt._turns.settle
            self.assertEqual(rt.runs(), [])

    def test_wait_for_ever(self):
        with self.open() as rt:
            for timeout in (float("inf"), 1e10):
                run = rt.spawn("where is the torn tail cut?", role="code_reviewer", cwd=self.work)
                self.assertEqual(run.wait(timeout).status, "success")

    def test_daemon_is_gone(self):
        if world.MODE != "connected":
            self.skipTest("there is no daemon")
        self.open()
        rt = ava.open(self.root, start=False)
        self.opened.append(rt)
        run = self.spawn(rt, self.slow)
        threading.Timer(0.1, end_daemon, (self.root, signal.SIGKILL)).start()
        with self.assertRaises(ava.UnreachableError):
            run.wait()
        for call in (run.status, lambda: asyncio.run(run.result())):
            with self.assertRaises(ConnectionError):
                call()
        with self.open() as again:
            again.cancel_all()

    def test_daemon_dies(self):
        if world.MODE != "connected":
            self.skipTest("there is no daemon")
        with self.open() as rt:
            run = self.spawn(rt, self.slow)
            items = run.items()
            self.assertEqual(next(items)["kind"], "started")
            got = []

            def wait():
                while not got:
                    try:
                        got.append(run.wait(PATIENCE_S).status)
                    except ava.UnreachableError:
                        pass  # it did not come back yet: as ava.h says, call again
            thread = threading.Thread(target=wait)
            thread.start()
            until(lambda: rt._turns.leading)
            end_daemon(self.root, signal.SIGKILL)
            until(lambda: rt.runs(all=True))  # which starts another one
            run.cancel()
            thread.join(PATIENCE_S)
            self.assertIn(got, (["cancelled"], ["error"]))
            self.assertEqual([item["kind"] for item in items][-1], "failed")


class Wheel(World):
    def test_is_typed(self):
        """A program that is wrong is found by mypy, one that is right is not."""
        if subprocess.run([os.environ.get("MYPY", "mypy"), "--version"], capture_output=True, check=False).returncode:
            self.skipTest("there is no mypy")
        if world.MODE != "embedded":
            self.skipTest("once is enough")
        path = os.path.join(self.folder, "typed.py")
        program = ("import ava\n"
                   "with ava.open() as rt:\n"
                   "    run = rt.spawn('task', role='researcher', timeout_ms=1000)\n"
                   "    result: ava.Result = run.wait()\n"
                   "    cost: int = result.cost_microusd\n"
                   "    async def f() -> None:\n"
                   "        async for item in run.items():\n"
                   "            print(item['title'])\n")
        for text, code in ((program, 0), (program.replace("timeout_ms=1000", "timeout_ms='1 s'"), 1),
                           (program.replace("cost: int", "cost: str"), 1), (program.replace("'title'", "'titel'"), 1)):
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            done = subprocess.run([os.environ.get("MYPY", "mypy"), "--strict", "--enable-incomplete-feature=Unpack",
                                   "--python-executable", sys.executable, path],
                                  capture_output=True, text=True, check=False, cwd=self.folder)
            self.assertEqual(done.returncode, code, done.stdout)

# Performs the tasks of a queue on a Redis stream: REDIS_URL=redis://localhost python worker.py shout
# It needs a Redis client (pip install redis) and nothing of Weft. Start as many as you like.
import contextlib, json, os, socket, sys, threading, time
import redis

prefix = os.environ.get("PREFIX", "")  # t:acme: for the runs of the tenant acme
tasks, done = f"{prefix}wf.tasks.{sys.argv[1]}", f"{prefix}wf.done"
me = f"{socket.gethostname()}-{os.getpid()}"
server = redis.Redis.from_url(os.environ.get("REDIS_URL", "redis://localhost"), decode_responses=True)

def perform(step, key, input):  # key is the same in all attempts: pass it on to the services that you call
    if step == "shout":
        return input["text"].upper()
    raise LookupError(f"There is no step {step} here.")

def keep(entry, seconds, over):
    while not over.wait(seconds):  # who does not touch a task for a lease loses it
        with contextlib.suppress(redis.RedisError):
            server.xclaim(tasks, "weft", me, 0, [entry], justid=True)

def handle(entry, task):
    over = threading.Event()
    threading.Thread(target=keep, args=(entry, int(task["lease_ms"]) / 3000, over), daemon=True).start()
    try:
        result = perform(task["step"], task["key"], json.loads(task["input"]))
        answer = {"status": "completed", "result": json.dumps(result)}
    except Exception as error:
        answer = {"status": "failed", "error": json.dumps({"type": type(error).__name__, "message": str(error)})}
    over.set()
    server.xadd(done, {"token": task["token"], **answer})  # first answer, then forget the task
    server.xack(tasks, "weft", entry)
    server.xdel(tasks, entry)

while True:
    try:
        for _, entries in server.xreadgroup("weft", me, {tasks: ">"}, count=1, block=1000):
            handle(*entries[0])
    except redis.RedisError as error:  # no host has made the stream yet, or Redis is away
        print(error, file=sys.stderr, flush=True)
        time.sleep(1)

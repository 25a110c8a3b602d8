// A worker in another language: it knows the address of a server and the name of a step, and nothing of Python.
const [, , base, mode] = process.argv;

async function post(path, body) {
  const response = await fetch(`${base}/api/v1/tasks/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

while (true) {
  const claimed = await post("claim", { steps: ["resize"], queues: ["elsewhere"], wait: 5, lease: 1 });
  for (const task of claimed.body.tasks) {
    console.log(`claimed ${task.input.file} attempt ${task.attempt}`);
    if (mode === "hang") await new Promise((resolve) => setTimeout(resolve, 60_000));
    await post(`${task.id}/emit`, { stream: "log", chunks: [`resizing ${task.input.file}`] });
    const kept = await post(`${task.id}/heartbeat`, {});
    const done = await post(`${task.id}/complete`, { output: { size: task.input.file.length } });
    console.log(`kept ${kept.status} completed ${done.status}`);
  }
}

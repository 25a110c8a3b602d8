"""What is measured in a page. Times are taken in the browser, from what was done to what is seen."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import CDPSession, Page

WAIT_MS = 60_000
SEEN = """
async ([selector, most]) => {
  while (document.querySelectorAll(selector).length < most) await new Promise(requestAnimationFrame);
  return performance.now();
}
"""
FIRST_PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()"
SCROLLED = """
async ([selector, frames, step]) => {
  const box = document.querySelector(selector), took = [];
  let last = await new Promise(requestAnimationFrame);
  for (let n = 0; n < frames; n++) {
    box.scrollTop += step;
    const now = await new Promise(requestAnimationFrame);
    took.push(now - last);
    last = now;
  }
  return took;
}
"""
FRAMES = """
async (frames) => {
  const took = [];
  let last = await new Promise(requestAnimationFrame);
  for (let n = 0; n < frames; n++) {
    const now = await new Promise(requestAnimationFrame);
    took.push(now - last);
    last = now;
  }
  return took;
}
"""
TRAVELLED = """
async (events) => {
  const slider = document.querySelector('input[aria-label="Event"]');
  const isDrawn = (event) => document.querySelector(`.picture[data-event="${event}"]`) !== null;
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
  const took = [];
  for (const event of events) {
    const began = performance.now();
    set.call(slider, String(event));
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    const isShown = (text) => text.startsWith(`event ${event} of`) && text.includes(",");
    while (!isShown(slider.getAttribute("aria-valuetext")) || !isDrawn(event)) await new Promise(requestAnimationFrame);
    took.push(performance.now() - began);
  }
  return took;
}
"""
JUMPED = """
async (seq) => {
  const log = document.querySelector('[role="grid"][aria-label="Log"]');
  const last = (n) => log.querySelector(`[aria-rowindex="${n}"]`);
  log.focus();
  const took = [];
  for (const [key, row] of [["Home", 1], ["End", seq], ["Home", 1], ["End", seq], ["Home", 1]]) {
    const began = performance.now();
    log.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    while (last(row) === null) await new Promise(requestAnimationFrame);
    took.push(performance.now() - began);
  }
  return took;
}
"""


def until_seen(page: Page, selector: str, most: int = 1) -> float:
    """Return the milliseconds from the beginning of the navigation until so many elements are there."""
    return float(page.evaluate(SEEN, [selector, most]))


def p95(took: list[float]) -> float:
    return sorted(took)[int(len(took) * 0.95)]


def heap_mb(session: CDPSession) -> float:
    """Return the heap after a collection."""
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


def busy_seconds(session: CDPSession) -> tuple[float, float]:
    """Return how long the main thread has been busy, and the time."""
    found: dict[str, Any] = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return float(found["TaskDuration"]), float(found["Timestamp"])

"use strict";

// Follow the page around the tab into the dark and back. Opened by itself, the system's choice holds.
function followTheme() {
  const outer = window.parent === window ? null : window.parent.document.documentElement;
  if (!outer) return;
  const take = () => {
    const isDark = outer.classList.contains("dark");
    document.documentElement.classList.toggle("dark", isDark);
    document.documentElement.classList.toggle("light", !isDark);
  };
  take();
  new MutationObserver(take).observe(outer, { attributes: true, attributeFilter: ["class"] });
}

// A link to a page of Airflow opens where the tab stands, not inside it. The frame may not do so itself.
function openOutside(event) {
  const link = event.target.closest("a.airflow");
  if (!link || window.parent === window) return;
  event.preventDefault();
  const outer = window.parent.document.createElement("a");
  outer.href = link.href;
  if (link.rel) [outer.rel, outer.target] = [link.rel, "_blank"]; // not of this Airflow
  outer.click();
}

// Where an approval stands is Airflow's to tell, to whoever may read that DAG too.
async function tellAnswer(place) {
  const get = async (path) => {
    const answer = await fetch(place.dataset.api + path, { headers: { Accept: "application/json" } });
    return answer.ok ? answer.json() : null;
  };
  const [details, task] = await Promise.all([get("/hitlDetails"), get("/taskInstances/approve")]);
  const question = details && details.hitl_details.find((found) => found.task_instance.task_id === "approve");
  const words = answerWords(question, task && task.state);
  if (words) place.textContent = words;
}

function answerWords(question, state) {
  const waits = ["awaiting_input", "deferred"].includes(state); // the latter in Airflow 3.2
  if (question && question.response_received && !waits) {
    const by = question.responded_by_user ? ` by ${question.responded_by_user.name}` : "";
    const word = { Approve: "Approved", Reject: "Rejected" }[question.chosen_options[0]] || "Answered";
    return `${word}${by}, ${shortTime(question.responded_at)}.`;
  }
  if (waits) return `Waits for an answer since ${shortTime(question && question.created_at)}.`;
  if (state === "failed") return "Nobody answered in time: nothing was sent.";
  if (state === "skipped") return "Nobody is asked: the changes are due no more, or a newer set replaced them.";
  return state ? "The question is being made ready." : "";
}

function shortTime(text) {
  return text ? `${new Date(text).toISOString().slice(0, 19).replace("T", " ")} UTC` : "a while";
}

// While the run goes on: which task runs, and the page once more every few seconds, unless somebody is busy with it.
async function tellGoingOn(line) {
  const get = async (path) => {
    const answer = await fetch(line.dataset.api + path, { headers: { Accept: "application/json" } });
    return answer.ok ? answer.json() : null;
  };
  const found = await Promise.all([get(""), get("/taskInstances?state=running&limit=50")]).catch(() => []);
  const [run, tasks] = found;
  const goesOn = run && ["queued", "running"].includes(run.state);
  const wentOn = line.dataset.wentOn;
  if (!goesOn && !wentOn) return;
  if (run && wentOn && !isBusy()) {
    document.location.reload();
    return;
  }
  line.dataset.wentOn = "yes";
  line.textContent = goingOnWords(run, goesOn, (tasks && tasks.task_instances) || []);
  setTimeout(() => tellGoingOn(line), 5000);
}

function goingOnWords(run, goesOn, tasks) {
  if (!run) return "Airflow does not say whether this run still goes on. What follows may be older.";
  if (!goesOn) return "This run has ended. What follows may be older: load this page again.";
  const names = tasks.map((task) => task.task_id).join(", ");
  return `This run goes on${names ? `: ${names} runs` : ""}. What follows is what it has left so far.`;
}

// Somebody reads what a reload would close, or the page is behind another one.
function isBusy() {
  return document.hidden || Boolean(document.querySelector("details[open]")) || String(getSelection()) !== "";
}

// Enter in the search field opens the same page with other words; without the script the links beside it stay.
function searchBy(field) {
  field.addEventListener("change", () => {
    const address = new URL(field.dataset.address, document.location.href);
    if (field.value) address.searchParams.set("q", field.value);
    document.location.assign(address);
  });
}

followTheme();
document.addEventListener("click", openOutside);
const place = document.getElementById("answer");
if (place) tellAnswer(place);
const goingOn = document.getElementById("goes-on");
if (goingOn) tellGoingOn(goingOn);
const search = document.getElementById("search");
if (search) searchBy(search);

"use strict";

// What was told of the message before goes when another is sent; the receipt joins what has been told of it meanwhile.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.id === "say") {
    document.getElementById("note").replaceChildren();
  }
});
// The field is cleared once the message is taken, and Enter sends it; with Shift it begins a new line.
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.target.id === "say" && event.detail.successful && !event.detail.xhr.responseText.includes("problem")) {
    event.target.reset();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target.matches("#say textarea")) {
    event.preventDefault();
    event.target.form.requestSubmit();
  }
});
// A talk goes on at its end, so that is where one comes in.
document.addEventListener("DOMContentLoaded", () => document.getElementById("live") && toTheEnd());
document.addEventListener("htmx:sseMessage", (event) => {
  toTheEnd();
  seen(event.detail.lastEventId);
});
document.addEventListener("htmx:afterSwap", toTheEnd); // the field stands before what is not scrolled to
document.addEventListener("htmx:sendError", () => tell("That was not sent: the service does not answer."));
document.addEventListener("htmx:responseError", (event) => tell(`That was not sent: ${event.detail.xhr.status}.`));

// A stream that was refused, by a proxy while the service starts anew say, is begun again at the address that stands
// in the page, and not by the browser, which would remember by itself.
function seen(id) {
  const live = document.getElementById("live");
  if (id) {
    live.setAttribute("sse-connect", live.getAttribute("sse-connect").replace(/after=.*/, `after=${id}`));
  }
}

function toTheEnd() {
  window.scrollTo(0, document.body.scrollHeight);
}

function tell(problem) {
  const told = document.createElement("p");
  told.className = "problem";
  told.textContent = problem;
  document.getElementById("note").replaceChildren(told);
  toTheEnd();
}

"use strict";

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
document.addEventListener("htmx:sseMessage", () => window.scrollTo(0, document.body.scrollHeight));

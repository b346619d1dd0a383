// A plain form: the browser itself posts it, and the server ends the session.
export default function ({ data, parentElement }) {
  parentElement.querySelector("button").textContent = data.label;
}

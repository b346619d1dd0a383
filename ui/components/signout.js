// A plain form: the browser itself posts it, and the server ends the session.
export default function () {}

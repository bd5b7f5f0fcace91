// A link becomes a cookie. Its token stands behind the "#", where no server, log or preview of a messenger sees it, and
// leaves the address bar at once, so that nobody reads it off a shared screen.
import { $ } from "./dom.js";

const token = location.hash.slice(1);
history.replaceState(null, "", "/join");

async function join() {
  if (!token) throw new Error("This link is cut short. Copy all of it, up to its end.");
  const response = await fetch("/api/join", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token }),
  });
  if (!response.ok) throw new Error((await response.json()).error.message);
  const { role } = await response.json();
  location.replace(role === "dm" ? "/desk" : "/");
}

join().catch((error) => {
  const words = error instanceof TypeError ? "The server cannot be reached. Open the link again in a moment." : error.message;
  $("joining").textContent = words.charAt(0).toUpperCase() + words.slice(1);
});

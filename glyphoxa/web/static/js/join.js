// Exchanges a link for a cookie. The token is after the "#", where no server, log or link preview sees it. It is removed
// from the address bar at once, so that a shared screen does not show it.
import { $ } from "./dom.js";
import { refusal, t } from "./words.js";

const token = location.hash.slice(1);
history.replaceState(null, "", "/join");

async function join() {
  if (!token) throw new Error(t("join.cut"));
  const response = await fetch("/api/join", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token }),
  });
  if (!response.ok) {
    const { error } = await response.json();
    throw new Error(error.code === "forbidden" ? t("error.bad_link") : refusal(error));
  }
  const { role } = await response.json();
  location.replace(role === "dm" ? "/desk" : "/");
}

join().catch((error) => {
  $("joining").textContent = error instanceof TypeError ? t("join.away") : error.message;
});

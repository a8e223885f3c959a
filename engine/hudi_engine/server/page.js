const renew = async () => {
  if (document.hidden || getSelection().type === "Range") return;
  const answer = await fetch("/").catch(() => null);
  document.title = answer && answer.ok ? "dbt-hudi serve" : "(no answer) dbt-hudi serve";
  if (!answer || !answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of fresh.querySelectorAll("[data-part]")) {
    const old = document.querySelector(`[data-part="${part.dataset.part}"]`);
    if (!old || old.isEqualNode(part) || old.contains(document.activeElement) || old.querySelector("[aria-sort]")) continue;
    old.replaceWith(part);
  }
};
setInterval(renew, 3000);

// Keeps open pages up to date and adds keys. Every page works without it.
"use strict";
(() => {
  const body = document.body;
  const kind = body.dataset.page;
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
  const announce = (text) => { const place = $("#announce"); if (place) place.textContent = text; };

  // ---- times in words, kept true while the page is open
  const span = (ms) => {
    const s = Math.max(0, Math.floor(ms / 1000));
    const two = (a, u, b, v) => (b ? `${a} ${u} ${b} ${v}` : `${a} ${u}`);
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min`;
    if (s < 86400) return two(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "min");
    return two(Math.floor(s / 86400), s < 172800 ? "day" : "days", Math.floor((s % 86400) / 3600), "h");
  };
  // Whoever looks has a time zone; the server does not know which.
  const clock = (at) => at.toLocaleTimeString([], { hour: "numeric", minute: "2-digit" });
  const local = (at, now) => at.toDateString() === now.toDateString() ? clock(at)
    : `${at.toLocaleDateString([], { day: "numeric", month: "short" })}, ${clock(at)}`;
  // By the clock of the store: that of the browser may be hours off.
  const ahead = (page) => Date.parse(page.dataset.now) - Date.now();
  let off = ahead(body);
  const tick = () => {
    const now = Date.now() + off;
    for (const time of $$("time:not([data-local])")) {
      const at = new Date(time.dateTime);
      time.dataset.local = "yes";
      time.title = `${time.dataset.left === undefined ? "" : "until "}${at.toLocaleString()}`;
      if (time.dataset.clock !== undefined) time.textContent = local(at, new Date(now));
    }
    for (const time of $$("time[data-ahead]")) {
      const left = Date.parse(time.dateTime) - now;
      time.textContent = left <= 0 ? "now" : `in ${span(left)}`;
    }
    for (const time of $$("time[data-past]")) {
      const gone = now - Date.parse(time.dateTime);
      time.textContent = gone < 5000 ? "just now" : `${span(gone)} ago`;
    }
    for (const time of $$("time[data-left]")) {
      const left = Date.parse(time.dateTime) - now;
      time.textContent = left <= 0 ? "time is up" : `${span(left)} left`;
      time.classList.toggle("now", left < 120000);
      time.classList.toggle("soon", left >= 120000 && left < 600000);
    }
  };
  setInterval(tick, 1000);
  tick();

  // ---- live: what changed is read again and put in place; what somebody types stays where it is
  const form = $("#answer");
  const written = (place) => $$("input:not([type=hidden]), textarea", place).some((field) =>
    field.type === "radio" || field.type === "checkbox" ? field.checked : field.value.trim() !== "");
  const typed = () => form && written(form);
  const close = () => {
    if (!form || form.dataset.closed) return;
    form.dataset.closed = "yes";
    if (!typed()) {
      const held = form.contains(document.activeElement);
      form.hidden = true;
      if (held) $("#outcome").focus();
      return;
    }
    $("#closed").hidden = false;
    $$("button, input[type=radio], input[type=checkbox]", form).forEach((field) => { field.disabled = true; });
    $$("textarea, input[type=password]", form).forEach((field) => { field.readOnly = true; });
  };
  // Sessions end with the server. Nothing typed: to the sign-in page at once; else it stays, with a link to there.
  const out = $("#out");
  const signedOut = () => {
    if (written($("main"))) out.hidden = false;
    else location.replace(body.dataset.url);
  };
  let wanted = false, busy = false;
  const refresh = async () => {
    if (busy) { wanted = true; return; }
    busy = true;
    wanted = false;
    try {
      const reply = await fetch(body.dataset.url, { cache: "no-store", headers: { Accept: "text/html" } });
      if (reply.redirected) signedOut();
      else if (reply.ok) put(new DOMParser().parseFromString(await reply.text(), "text/html"));
    } catch { wanted = true; }
    setTimeout(() => { busy = false; if (wanted) refresh(); }, 400);
  };
  // Whose forms these are. Another who signs in with this browser gets the page anew and sends nothing that was typed in
  // the name of the one before: the server refuses a form of another session, and shows its text back.
  const visitor = $("#visitor")?.textContent;
  const signedInAs = (name) => {
    const other = $("#other"), lost = name !== visitor && written($("main"));
    other.hidden = !lost;
    $("b", other).textContent = name;
    // Loaded anew by its own address: this page may be what a form was answered with.
    if (name !== visitor && !lost && $("main form")) location.replace(body.dataset.url);
  };
  const keyOf = (place) => place?.closest("[data-key]")?.dataset.key;
  // What had the focus has it again, what was folded out stays so, and long texts stay where they were read.
  const swap = (old, now) => {
    const at = document.activeElement, held = old.contains(at);
    const folds = $$("details", old), texts = $$("pre", old).map((text) => [text.scrollLeft, text.scrollTop]);
    const before = ({ dataset: { fold } }, index) => fold ? folds.find((other) => other.dataset.fold === fold) : folds[index];
    $$("details", now).forEach((fold, index) => { fold.open = before(fold, index)?.open ?? fold.open; });
    old.replaceWith(document.adoptNode(now));
    $$("pre", now).forEach((text, index) => text.scrollTo(...(texts[index] ?? [0, 0])));
    const same = (other) => other.tagName === at.tagName && other.href === at.href && keyOf(other) === keyOf(at);
    if (held) (at === old ? now : $$("a, summary", now).find(same))?.focus({ preventScroll: true });
  };
  const put = (fresh) => {
    const key = keyOf(document.activeElement) ?? picked?.dataset.key;
    for (const old of $$("[data-live]")) {
      const now = fresh.getElementById(old.id);
      // What is the same keeps what somebody selected in it.
      if (now && !old.isEqualNode(now)) swap(old, now);
    }
    document.title = fresh.title;
    off = ahead(fresh.body);
    const name = $("#visitor").textContent;
    signedInAs(name);
    // Who signed in again has a new session, and forms that are open go on in it.
    const csrf = $("input[name=csrf]", fresh).value;
    $$(name === visitor ? "input[name=csrf]" : "header input[name=csrf]").forEach((field) => { field.value = csrf; });
    out.hidden = true;
    if ($("#outcome .outcome")) close();
    if (key) pick($$("[data-key]").find((card) => card.dataset.key === key), true);
    tick();
  };
  const told = (event) => {
    const id = event.question?.question_id ?? event.question_id;
    if (kind === "question") {
      if (id !== $("[data-question]").dataset.question) { refresh(); return; }
      announce(event.answered_by ? `This question was answered by ${event.answered_by}.` : "This question was closed.");
    } else if (event.type === "question.opened") {
      announce(`A new question of ${event.feature_id}.`);
    }
    refresh();
  };
  let source = null, again = document.hidden, seen = body.dataset.seq;
  const live = $("#live");
  const listen = () => {
    if (source || !live || document.hidden) return;
    source = new EventSource(`/events?after=${encodeURIComponent(seen)}`);
    source.onopen = () => {
      live.hidden = false;
      live.textContent = "Live";
      live.classList.remove("off");
      // What else changed meanwhile is no event: the server, or who is signed in.
      if (again) refresh();
      again = true;
    };
    source.onmessage = (message) => { seen = message.lastEventId; told(JSON.parse(message.data)); };
    source.onerror = () => {
      live.hidden = false;
      live.textContent = "Reconnecting…";
      live.classList.add("off");
      // The server answers and refuses: the page itself tells why.
      if (source.readyState === EventSource.CLOSED) { source = null; refresh(); setTimeout(listen, 3000); }
    };
  };
  // A browser has six connections for one server. Pages that nobody sees give theirs back; what they missed is replayed
  // when they are looked at again. The title of an inbox counts meanwhile.
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) { listen(); return; }
    if (source) { source.close(); source = null; }
  });
  if (kind === "inbox") setInterval(() => { if (document.hidden) refresh(); }, 60000);
  listen();

  // ---- keys
  const help = $("#keys");
  if (help) help.hidden = false;
  let picked = null;
  const pick = (card, quietly) => {
    if (!card) return;
    $$(".picked").forEach((other) => other.classList.remove("picked"));
    picked = card;
    card.classList.add("picked");
    if (!quietly) { $("a.open", card).focus(); card.scrollIntoView({ block: "nearest" }); }
  };
  const step = (list, from, by) => list[Math.min(list.length - 1, Math.max(0, from < 0 ? (by > 0 ? 0 : list.length - 1) : from + by))];
  const inbox = (key) => {
    const cards = $$("[data-key]");
    if (key === "j" || key === "k") pick(step(cards, cards.findIndex((card) => card.dataset.key === picked?.dataset.key), key === "j" ? 1 : -1));
    else if (/^[1-9]$/.test(key)) pick(cards[Number(key) - 1]);
    else return false;
    return true;
  };
  const question = (key) => {
    if (key === "u") { location.href = "/"; return true; }
    if (!form || form.dataset.closed) return false;
    const fields = $$("[data-field]", form);
    const here = fields.findIndex((field) => field.contains(document.activeElement));
    if (key === "j" || key === "k") {
      const field = step(fields, here, key === "j" ? 1 : -1);
      ($("input:checked", field) ?? $("input, textarea", field)).focus();
      return true;
    }
    if (/^[1-9]$/.test(key)) {
      const options = $$("input[type=radio], input[type=checkbox]", fields[Math.max(here, 0)]);
      const option = options[Number(key) - 1];
      if (option) { option.focus(); option.click(); }
      return true;
    }
    return false;
  };
  document.addEventListener("keydown", (event) => {
    const at = event.target;
    const writing = at.matches("textarea, input[type=password], input[type=text]");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form && form.contains(at)) { form.requestSubmit(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (writing) { if (event.key === "Escape") at.blur(); return; }
    if (event.key === "Enter" && kind === "question") {
      if (at.matches("a, button, summary")) return;
      const next = $("#next");
      if (form && !form.dataset.closed && !form.hidden) { if (typed()) { event.preventDefault(); form.requestSubmit(); } }
      // Meant to send, at the moment somebody else was faster: what was not sent is not left behind.
      else if (next && !written($("main"))) { event.preventDefault(); next.click(); }
      return;
    }
    if (event.key === "?" && help) { help.scrollIntoView({ block: "nearest" }); return; }
    const done = kind === "inbox" ? inbox(event.key) : kind === "question" ? question(event.key) : false;
    if (done) event.preventDefault();
  });

  // ---- small helps in forms
  document.addEventListener("input", (event) => {
    const other = event.target.closest(".other");
    const radio = other && $("input[type=radio]", other);
    if (radio && event.target.matches("textarea, input[type=password]") && event.target.value.trim()) radio.checked = true;
  });
  // A password field would drop the line ends of a key that is pasted. As on a terminal, the last one is no part of it.
  form?.addEventListener("paste", (event) => {
    const at = event.target, text = event.clipboardData.getData("text/plain").replace(/[\r\n]+$/, "");
    if (!at.matches("input[type=password]") || !/[\r\n]/.test(text)) return;
    event.preventDefault();
    const lines = document.createElement("textarea");
    [...at.attributes].forEach(({ name, value }) => { if (name !== "type") lines.setAttribute(name, value); });
    lines.className = "secret";
    // A password is kept by no browser that goes back to the page; this is not either.
    lines.setAttribute("autocomplete", "off");
    lines.rows = 4;
    lines.value = at.value;
    lines.setRangeText(text, at.selectionStart, at.selectionEnd, "end");
    at.replaceWith(lines);
    lines.focus();
    lines.dispatchEvent(new Event("input", { bubbles: true }));
  });
  const unsent = () => { if (form) delete form.dataset.sent; };
  form?.addEventListener("submit", (event) => {
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
    // Nothing tells a page that its sending was stopped. The same operation sent twice is one answer.
    setTimeout(unsent, 2000);
  });
  window.addEventListener("pageshow", unsent);
  // Whoever leaves what they typed and did not send is asked first: what the answer of another came before is gone then.
  window.addEventListener("beforeunload", (event) => {
    if (form && !form.dataset.sent && typed()) event.preventDefault();
  });
  $("#wrong")?.focus();
})();

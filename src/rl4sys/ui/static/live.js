// Listens to server-sent events while the page is visible: hidden tabs would use up the connections of the browser.

// handlers: {eventName: (data) => …}; `state`, if given, is called with true or false when the connection comes or goes.
export function listen(url, handlers, state = () => {}) {
  let source = null;
  function open() {
    if (source) return;
    source = new EventSource(typeof url === "function" ? url() : url);
    source.onopen = () => state(true);
    source.onerror = () => {
      state(false);
      // A browser gives up after some answers; this does not.
      if (source && source.readyState === EventSource.CLOSED) {
        close();
        setTimeout(open, 2000);
      }
    };
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => handle(JSON.parse(event.data)));
    }
  }
  function close() {
    if (source) source.close();
    source = null;
  }
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  if (!document.hidden) open();
  return { close, open };
}

// A page with nothing but the package: `api` in the page, or in a worker.

window.api = await import(location.hash === "#worker" ? "/js/worker.js" : "/js/index.js");
document.documentElement.dataset.ready = "";

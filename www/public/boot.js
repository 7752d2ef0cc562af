// Says on the loading page why the page's own script did not start. It stands
// apart from that script, and asks for nothing that old browsers lack.

(function () {
  function tell(text) {
    var label = document.getElementById("boot-label");
    if (!label || document.documentElement.hasAttribute("data-started") || label.className === "failed") return;
    var late = document.getElementById("boot-late");
    if (late) late.remove();
    label.textContent = text;
    label.className = "failed";
    var again = document.createElement("button");
    again.type = "button";
    again.textContent = "Try again";
    again.addEventListener("click", function () {
      location.reload();
    });
    label.after(again);
  }

  // Of what cannot be loaded, the error does not bubble.
  addEventListener("error", function (event) {
    var element = event.target;
    if (element && element.tagName === "SCRIPT") {
      var name = element.src.replace(/^.*\//, "");
      tell(navigator.onLine === false
        ? "There is no network, and this page has not been loaded completely before. Connect and reload."
        : "The page's script " + name + " did not come: the server does not answer, has a newer version, or something in between blocks it. Reload the page.");
    } else if (event.message) {
      tell("The page's script does not run here: " + event.message + ". A newer browser may be needed.");
    }
  }, true);
})();

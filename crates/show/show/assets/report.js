(function () {
  "use strict";
  var root = document.documentElement;
  function every(selector, each) { document.querySelectorAll(selector).forEach(each); }

  // What an element says when a pointer or finger is on it: its own title, shown at once.
  function words(mark) {
    if (mark.dataset.tip === undefined) {
      var title = mark.querySelector(":scope > title");
      mark.dataset.tip = title ? title.textContent : mark.title;
      if (title) { title.remove(); }
      mark.removeAttribute("title");
    }
    return mark.dataset.tip;
  }

  // The slice of time below the pointer, of the line that is nearest to it.
  function slice(plot, event) {
    var box = plot.querySelector("svg.box").getBoundingClientRect(), best = null;
    plot.querySelectorAll("polyline[data-width]").forEach(function (line) {
      var scale = line.getAttribute("transform").match(/[-\d.e]+/g).map(Number);
      var at = Math.floor((event.clientX - box.left) / box.width * 1000 / scale[0]);
      if (at < 0 || at >= line.points.length) { return; }
      var value = line.points[at].y;
      var away = Math.abs((1000 + value * scale[3]) / 1000 * box.height - (event.clientY - box.top));
      if (!best || away < best[0]) {
        var exact = line.getAttribute("points").split(" ")[at].split(",")[1];
        var from = Number((at * line.dataset.width).toFixed(3));
        best = [away, line.dataset.name + "\n" + exact + " " + line.dataset.unit + " from " + from + " s"];
      }
    });
    return best && best[1];
  }

  // A number and its percent stay in one line. The file has plain spaces, as a search does.
  every("h1, p, li, td, dd", function (one) {
    var texts = document.createTreeWalker(one, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      texts.currentNode.data = texts.currentNode.data.replaceAll(" %", "\u00a0%");
    }
  });

  var tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  document.addEventListener("pointermove", point);
  document.addEventListener("pointerdown", point);
  function point(event) {
    var mark = event.target.closest("[data-at]"), plot = event.target.closest(".plot");
    var said = mark ? words(mark) : plot && slice(plot, event);
    tip.hidden = !said;
    if (!said) { return; }
    tip.textContent = said;
    var left = Math.min(event.clientX + 14, root.clientWidth - tip.offsetWidth - 8);
    var below = event.clientY + 18 + tip.offsetHeight < root.clientHeight;
    tip.style.left = Math.max(8, left) + scrollX + "px";
    tip.style.top = event.clientY + scrollY + (below ? 18 : -12 - tip.offsetHeight) + "px";
  }

  // Charts that take turns in one place.
  every(".choice", function (choice) {
    var select = choice.querySelector("select"), places = choice.querySelectorAll(":scope > div:not(.choose)");
    function show(by) {
      select.selectedIndex = (select.selectedIndex + by + select.length) % select.length;
      places.forEach(function (place, at) { place.hidden = at !== select.selectedIndex; });
    }
    select.addEventListener("change", function () { show(0); });
    choice.querySelectorAll("button").forEach(function (button) {
      button.addEventListener("click", function () { show(Number(button.value)); });
    });
    show(0);
  });

  // A click on a head sorts by it, a second one the other way round.
  every("table[data-sort]", function (table) {
    var heads = Array.from(table.tHead.rows[table.tHead.rows.length - 1].cells);
    heads.forEach(function (head, at) {
      head.tabIndex = 0;
      function key(row) {
        var cell = row.cells[at], v = cell.dataset.v;
        if (v !== undefined) { return Number(v); }
        var text = cell.textContent.trim(), number = parseFloat(text.replace(/[\u00b1,]/g, ""));
        return text === "" ? null : isNaN(number) ? text : number;
      }
      function sort() {
        var down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach(function (one) { one.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        var rows = Array.from(table.tBodies[0].rows);
        rows.sort(function (one, two) {
          var a = key(one), b = key(two);
          if (a === null || b === null) { return (a === null) - (b === null); }
          var order = typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
          return down ? -order : order;
        });
        table.tBodies[0].append.apply(table.tBodies[0], rows);
      }
      head.addEventListener("click", sort);
      head.addEventListener("keydown", function (event) { if (event.key === "Enter") { sort(); } });
    });
  });

  // Paper shows what is folded.
  addEventListener("beforeprint", function () {
    every("details[data-print]", function (one) { one.open = true; });
  });

  every("[data-copy]", function (button) {
    button.hidden = false;
    button.addEventListener("click", function () {
      var source = document.getElementById(button.dataset.copy);
      var done = function () {
        button.textContent = "Copied";
        setTimeout(function () { button.textContent = "Copy"; }, 1500);
      };
      var select = function () { getSelection().selectAllChildren(source); };
      if (navigator.clipboard) {
        navigator.clipboard.writeText(source.textContent).then(done, select);
      } else { select(); }
    });
  });

  root.dataset.charts = "ready";
})();

// Elements, tables that sort, and the switch of scales: what a study's page adds to the report.
var iostrataParts = (function () {
  "use strict";

  // An element with a class and children; texts become text and never markup.
  function make(tag, kind) {
    var node = document.createElement(tag);
    if (kind) { node.className = kind; }
    Array.prototype.slice.call(arguments, 2).forEach(function (child) {
      if (child === null || child === undefined || child === "") { return; }
      node.append(child);
    });
    return node;
  }

  // A table; a column is [head, is it a number], a cell a text or an element.
  function table(columns, rows, kind) {
    var head = make("tr");
    columns.forEach(function (column) {
      head.append(make("th", column[1] ? "n" : "", column[0]));
    });
    var body = make("tbody");
    rows.forEach(function (cells) {
      var row = make("tr");
      cells.forEach(function (cell, at) {
        row.append(make("td", columns[at][1] ? "n" : "", typeof cell === "number" ? String(cell) : cell));
      });
      body.append(row);
    });
    return make("div", "scroll", make("table", kind || "plain", make("thead", "", head), body));
  }

  // A click on a head sorts by it, a second one the other way round.
  function sortable(table) {
    var heads = table.tHead.rows[table.tHead.rows.length - 1].cells;
    Array.prototype.forEach.call(heads, function (head, at) {
      head.tabIndex = 0;
      var sort = function () {
        var down = head.getAttribute("aria-sort") === "ascending";
        Array.prototype.forEach.call(heads, function (one) { one.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        var rows = Array.prototype.slice.call(table.tBodies[0].rows);
        var key = function (row) {
          var cell = row.cells[at], v = cell.dataset.v;
          if (v !== undefined) { return Number(v); }
          var text = cell.textContent.trim(), number = parseFloat(text.replace(/[\u00b1,]/g, ""));
          return text === "" ? null : isNaN(number) ? text : number;
        };
        rows.sort(function (one, two) {
          var a = key(one), b = key(two);
          if (a === null || b === null) { return (a === null) - (b === null); }
          var order = typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
          return down ? -order : order;
        });
        table.tBodies[0].append.apply(table.tBodies[0], rows);
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", function (event) {
        if (event.key === "Enter") { sort(); }
      });
    });
  }

  document.querySelectorAll("table[data-sort]").forEach(sortable);

  // All panels of a set on a logarithmic scale, and back.
  document.querySelectorAll("[data-log]").forEach(function (box) {
    box.closest("label").hidden = false;
    var linear = {};
    box.addEventListener("change", function () {
      Object.keys(window.iostrata.charts).forEach(function (name) {
        if (name.indexOf(box.dataset.log) !== 0) { return; }
        var spec = window.iostrata.charts[name], axis = spec.layout.yaxis;
        linear[name] = linear[name] || axis.range.slice();
        axis.type = box.checked ? "log" : "linear";
        axis.autorange = box.checked;
        axis.range = box.checked ? undefined : linear[name].slice();
        var div = window.iostrata.find(name);
        if (div.layout) { window.iostrata.draw(div, spec); }
      });
    });
  });

  return { make: make, table: table };
})();

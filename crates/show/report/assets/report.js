(function () {
  "use strict";
  var root = document.documentElement;
  var specs = JSON.parse(document.getElementById("chart-data").textContent);
  var names = Object.keys(specs);
  var drawn = [];
  window.iostrataCharts = names;

  function colour(name) {
    return getComputedStyle(root).getPropertyValue(name).trim();
  }

  // Colours of text and grid follow the page; those of the data stay.
  function theme(layout) {
    var set = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      "font.color": colour("--ink"), "font.family": getComputedStyle(document.body).fontFamily,
      "hoverlabel.bgcolor": colour("--card"), "hoverlabel.bordercolor": colour("--line"),
      "hoverlabel.font.color": colour("--ink"),
      "modebar.bgcolor": "rgba(0,0,0,0)", "modebar.color": colour("--soft"),
      "modebar.activecolor": colour("--ink")
    };
    Object.keys(layout).forEach(function (key) {
      if (/^[xy]axis\d*$/.test(key)) {
        set[key + ".gridcolor"] = colour("--grid");
        set[key + ".linecolor"] = colour("--line");
        set[key + ".tickfont.color"] = colour("--soft");
        set[key + ".title.font.color"] = colour("--soft");
        set[key + ".title.standoff"] = 8;
        set[key + ".dividercolor"] = colour("--line");
      }
    });
    return set;
  }

  // Names of rows are cut to the width there is; the whole name is on hover and in the table.
  function cut(layout, width) {
    var room = Math.max(20, Math.floor(width / 6.4));
    (layout.annotations || []).forEach(function (note) {
      if (note.name !== "row") { return; }
      note.whole = note.whole || note.text;
      var letters = note.whole.match(/&[a-z]+;|[^]/gu) || [];
      note.text = letters.length > room ? letters.slice(0, room - 1).join("") + "\u2026" : note.whole;
    });
  }

  function put(layout, set) {
    Object.keys(set).forEach(function (path) {
      var keys = path.split("."), at = layout;
      keys.slice(0, -1).forEach(function (key) { at = at[key] = at[key] || {}; });
      at[keys[keys.length - 1]] = set[path];
    });
  }

  // A finger scrolls the page; a mouse zooms the chart.
  function config() {
    return {
      responsive: true, displaylogo: false, showTips: false,
      displayModeBar: matchMedia("(hover: hover)").matches ? "hover" : false,
      plotlyServerURL: "",
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"]
    };
  }

  function draw(div, spec) {
    var layout = spec.layout;
    cut(layout, div.clientWidth);
    put(layout, theme(layout));
    if (matchMedia("(pointer: coarse)").matches) { layout.dragmode = false; }
    return Plotly.react(div, spec.data, layout, config());
  }

  function start(name) {
    var div = document.getElementById("chart-" + name);
    var spec = specs[name];
    var choice = spec.choice;
    if (choice) {
      var select = document.getElementById("choice-" + name);
      var step = function (by) {
        select.selectedIndex = (select.selectedIndex + by + select.length) % select.length;
        draw(div, choice[select.selectedIndex]);
      };
      select.addEventListener("change", function () { step(0); });
      document.querySelectorAll('[data-step="' + name + '"]').forEach(function (button) {
        button.addEventListener("click", function () { step(Number(button.value)); });
      });
      spec = choice[Math.max(0, select.selectedIndex)];
    }
    drawn.push(div);
    return draw(div, spec);
  }

  function all(change) {
    drawn.forEach(function (div) { if (div.layout) { change(div); } });
  }

  // What a study's own script draws with.
  window.iostrata = {
    draw: function (div, spec) {
      if (drawn.indexOf(div) < 0) { drawn.push(div); }
      return draw(div, spec);
    },
    forget: function (div) {
      drawn = drawn.filter(function (one) { return one !== div; });
      if (div.layout) { Plotly.purge(div); }
    },
    charts: specs, find: function (name) { return document.getElementById("chart-" + name); }
  };

  function recolour() {
    all(function (div) { Plotly.relayout(div, theme(div.layout)); });
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);

  var later = 0;
  addEventListener("resize", function () {
    clearTimeout(later);
    later = setTimeout(function () {
      all(function (div) {
        cut(div.layout, div.clientWidth);
        Plotly.relayout(div, { annotations: div.layout.annotations });
      });
    }, 200);
  });

  // Paper is light and of one width.
  addEventListener("beforeprint", function () {
    root.classList.add("paper");
    document.querySelectorAll("details[data-print]").forEach(function (one) { one.open = true; });
    all(function (div) {
      var width = div.closest(".pair") ? 330 : 690;
      Plotly.relayout(div, Object.assign({ width: width, autosize: false }, theme(div.layout)));
    });
  });
  addEventListener("afterprint", function () {
    root.classList.remove("paper");
    all(function (div) {
      Plotly.relayout(div, Object.assign({ width: null, autosize: true }, theme(div.layout)));
    });
  });

  document.querySelectorAll("[data-copy]").forEach(function (button) {
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

  function begin(name) {
    return Promise.resolve().then(function () { return start(name); }).catch(function (error) {
      var div = document.getElementById("chart-" + name);
      div.textContent = "This chart could not be drawn; its table holds the same figures.";
      div.className += " failed";
      console.error(error);
    });
  }

  // One chart at a time, so that the page can be read meanwhile; a folded one when it is unfolded.
  (function next(at) {
    if (at === names.length) { root.dataset.charts = "ready"; return; }
    var folded = document.getElementById("chart-" + names[at]).closest("details:not([open])");
    if (folded) {
      folded.addEventListener("toggle", function () { begin(names[at]); }, { once: true });
      next(at + 1);
    } else {
      begin(names[at]).then(function () { setTimeout(next, 0, at + 1); });
    }
  })(0);
})();

// Points closely: one alone, or two beside each other, from the page's own data.
(function () {
  "use strict";
  var source = document.getElementById("point-data");
  if (!source) { return; }
  var data = null;
  var LETTERS = ["A", "B"];
  var MIXED = { t: "several layers", c: "var(--other)" };

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

  function name(place) { return place < 0 ? "" : data.names[place]; }
  function percent(pct) { return pct.toFixed(1) + "%"; }
  function microseconds(us) {
    var steps = [[1e6, " s"], [1e3, " ms"], [1, " us"]];
    var step = steps.find(function (one) { return us >= one[0]; }) || steps[2];
    return String(Number((us / step[0]).toPrecision(3))) + step[1];
  }
  function swatch(layer, text) {
    var mark = make("span", "layer", text || layer.t);
    mark.style.setProperty("--c", layer.c);
    return mark;
  }
  function share(pct) {
    var node = make("span", "share", percent(pct));
    node.style.setProperty("--w", Math.min(100, pct) + "%");
    return node;
  }

  // One select per factor; a combination that was not measured gives way to the nearest that was.
  function chooser(letter, start, changed) {
    var at = start;
    var row = make("div", "levels", letter ? make("b", "letter", letter) : null);
    var selects = data.factors.map(function (factor, f) {
      var select = make("select");
      select.setAttribute("aria-label", (letter ? letter + ": " : "") + factor.t);
      factor.l.forEach(function (level, place) { select.append(new Option(level, place)); });
      if (data.points.some(function (point) { return point.k[f] < 0; })) {
        select.append(new Option("\u2013", -1));
      }
      select.addEventListener("change", function () { choose(nearest(f, Number(select.value))); });
      row.append(make("label", "", make("span", "", factor.t), select));
      return select;
    });
    if (selects.length === 0) {
      var all = make("select");
      all.setAttribute("aria-label", (letter || "") + " point");
      data.points.forEach(function (point, place) { all.append(new Option(point.t, place)); });
      all.value = start;
      all.addEventListener("change", function () { choose(Number(all.value)); });
      row.append(all);
    }
    function nearest(f, level) {
      var now = data.points[at].k, best = at, most = -1;
      data.points.forEach(function (point, place) {
        if (point.k[f] !== level) { return; }
        var same = point.k.filter(function (one, other) { return one === now[other]; }).length;
        if (same > most) { most = same; best = place; }
      });
      return best;
    }
    function choose(place) {
      at = place;
      data.points[place].k.forEach(function (level, f) { selects[f].value = level; });
      changed(place);
    }
    data.points[start].k.forEach(function (level, f) { selects[f].value = level; });
    return row;
  }

  // Bars of parts, one row per entry: [row label, [[part, value, hover, shown]]]; of a whole, or on
  // the scale of the longest.
  function bars(box, kinds, rows, label, isShare) {
    var sums = rows.map(function (row) { return row[1].reduce(function (sum, part) { return sum + part[1]; }, 0); });
    var most = Math.max.apply(null, sums), chart = make("div", "chart");
    chart.setAttribute("role", "img");
    chart.setAttribute("aria-label", label);
    rows.forEach(function (row, at) {
      var bar = make("div");
      row[1].forEach(function (part) {
        var share = 100 * part[1] / (isShare ? sums[at] : most), node = make("div", "", share > 12 ? kinds[part[0]].t : "");
        node.style.setProperty("--c", kinds[part[0]].c);
        node.style.width = share + "%";
        node.dataset.at = row[0] + kinds[part[0]].t;
        node.dataset.tip = part[2];
        bar.append(node);
      });
      var line = make("div", "bar", make("span", "", row[0]), bar);
      if (!row[0]) { line.style.gridTemplateColumns = "0 minmax(0, 1fr)"; }
      chart.append(line);
    });
    box.append(chart);
  }

  // The parts that occur, by name; with their figures where there is one bar only.
  function legend(box, kinds, rows) {
    var list = make("ul", "layers");
    kinds.forEach(function (kind, place) {
      var parts = rows.map(function (row) { return row[1].find(function (one) { return one[0] === place; }); });
      if (!parts.some(Boolean)) { return; }
      list.append(make("li", "", swatch(kind, kind.t + (rows.length === 1 ? " " + parts[0][3] : ""))));
    });
    box.append(list);
  }

  function cpuBar(box, points) {
    var rows = points.filter(function (one) { return one.point.cpu; }).map(function (one) {
      var cpu = one.point.cpu;
      return [one.letter, cpu.layers.map(function (layer) {
        var text = data.layers[layer[0]].t + " " + percent(layer[2]) + "\n" + layer[1] + " of " + cpu.samples + " samples";
        if (data.layers[layer[0]].t === "lock") {
          cpu.lock.forEach(function (taken) { text += "\ntaken in " + data.layers[taken[0]].t + ": " + taken[1]; });
        }
        return [layer[0], layer[2], text, percent(layer[2])];
      })];
    });
    if (rows.length === 0) { return; }
    box.append(make("h3", "", "On-CPU, by layer of the kernel"));
    legend(box, data.layers, rows);
    bars(box, data.layers, rows, "Processor time by layer", true);
  }

  function notes(box, points, kind) {
    var said = {};
    points.forEach(function (one) {
      var found = one.point[kind];
      if (!found) { return; }
      box.append(make("p", "note", (one.letter ? one.letter + ": " : "") + found.how + "."));
      (found.notes || []).forEach(function (note) {
        if (!said[note]) { box.append(make("p", "note", note)); }
        said[note] = true;
      });
    });
  }

  // As `perf top` prints them.
  function symbols(box, points) {
    points = points.filter(function (one) { return one.point.cpu; });
    if (points.length === 0) { return; }
    box.append(make("h3", "", "Top symbols"));
    if (points.length === 1) {
      box.append(table(
        [["samples", true], ["pcnt", true], ["function", false], ["DSO", false], ["layer", false]],
        points[0].point.cpu.symbols.map(function (one) {
          return [one[3], share(one[4]), make("code", "", name(one[0])), make("code", "", name(one[1])), swatch(data.layers[one[2]])];
        }), "symbols"));
      return;
    }
    var rows = union(points, function (point) { return point.cpu.symbols; }, function (one) { return one[0] + " " + one[1]; });
    rows.sort(function (a, b) { return most(b) - most(a); });
    function most(row) { return Math.max.apply(null, row.map(function (one) { return one ? one[4] : 0; })); }
    box.append(table(
      [["pcnt A", true], ["pcnt B", true], ["function", false], ["DSO", false], ["layer", false]],
      rows.slice(0, 30).map(function (row) {
        var any = row[0] || row[1];
        return row.map(function (one) { return one ? share(one[4]) : make("span", "muted", "not listed"); })
          .concat([make("code", "", name(any[0])), make("code", "", name(any[1])), swatch(data.layers[any[2]])]);
      }), "symbols"));
  }

  // Rows of several points by their key: one entry per point, absent where it has none.
  function union(points, of, key) {
    var found = {}, order = [];
    points.forEach(function (one, at) {
      of(one.point).forEach(function (row) {
        var k = key(row);
        if (!found[k]) { found[k] = points.map(function () { return null; }); order.push(k); }
        found[k][at] = row;
      });
    });
    return order.map(function (k) { return found[k]; });
  }

  function waitsBar(box, points) {
    var rows = points.filter(function (one) { return one.point.off; }).map(function (one) {
      return [one.letter, one.point.off.layers.map(function (layer) {
        var text = data.layers[layer[0]].t + " " + percent(layer[3]) + "\n" + layer[2] + " in " + layer[1] + " waits";
        return [layer[0], layer[3], text, percent(layer[3])];
      })];
    });
    if (rows.length === 0) { return; }
    box.append(make("h3", "", "Off-CPU: what the threads waited for"));
    legend(box, data.layers, rows);
    bars(box, data.layers, rows, "Waits by layer", true);
  }

  function waits(box, points) {
    points = points.filter(function (one) { return one.point.off && one.point.off.waits.length; });
    if (points.length === 0) { return; }
    var reason = function (one) {
      var text = data.layers[one[2]].t + (one[3] >= 0 ? ", taken in " + data.layers[one[3]].t : "");
      return swatch(data.layers[one[2]], text);
    };
    var who = function (one) { return one[1] < 0 ? "" : make("code", "", name(one[1])); };
    if (points.length === 1) {
      box.append(table(
        [["total", true], ["waits", true], ["mean", true], ["longest", true], ["waits in", false], ["asked by", false], ["for", false]],
        points[0].point.off.waits.slice(0, 25).map(function (one) {
          return [one[5], one[4], one[6], one[7], make("code", "", name(one[0])), who(one), reason(one)];
        }), "symbols"));
      return;
    }
    var rows = union(points, function (point) { return point.off.waits; }, function (one) { return one.slice(0, 4).join(" "); });
    box.append(table(
      [["total A", true], ["mean A", true], ["total B", true], ["mean B", true], ["waits in", false], ["asked by", false], ["for", false]],
      rows.slice(0, 25).map(function (row) {
        var any = row[0] || row[1], cells = [];
        row.forEach(function (one) { cells.push(one ? one[5] : "", one ? one[6] : ""); });
        return cells.concat([make("code", "", name(any[0])), who(any), reason(any)]);
      }), "symbols"));
  }

  function latency(box, points) {
    points = points.filter(function (one) { return one.point.lat && one.point.lat.bars.length; });
    if (points.length === 0) { return; }
    box.append(make("h3", "", "Latency by layer"));
    var rows = [], cells = [];
    points.forEach(function (one) {
      one.point.lat.bars.forEach(function (bar) {
        var label = (one.letter ? one.letter + " " : "") + bar.t;
        rows.push([label, bar.rows.map(function (row) {
          return [row[0], row[1], data.segments[row[0]].t + " mean " + row[2][0] + "\np50 " + row[2][1] + ", p99 " + row[2][2] + "\nn = " + row[2][4], row[2][0]];
        })]);
        bar.rows.forEach(function (row) { cells.push([label, swatch(data.segments[row[0]])].concat(row[2])); });
        bar.more.forEach(function (row) { cells.push([label, make("span", "muted", row[0])].concat(row[1])); });
        if (bar.app) { cells.push([label, "seen by the application", bar.app, "", "", "", ""]); }
        if (bar.rest) { cells.push([label, "explained by no part", bar.rest, "", "", "", ""]); }
      });
    });
    legend(box, data.segments, rows);
    bars(box, data.segments, rows, "Latency by layer", points.length > 1);
    box.append(table([["requests", false], ["part", false], ["mean", true], ["p50", true], ["p99", true], ["longest", true], ["n", true]], cells, "symbols"));
  }

  // Frames with the place and width of each in shares of all: a caller before its callees.
  function frames(flame, idle) {
    var out = [], path = [], skip = -1, left = 0, sum = 0;
    var layer = function (at) { return flame.l[at] < 0 ? MIXED : data.layers[flame.l[at]]; };
    flame.n.forEach(function (place, at) {
      var depth = flame.d[at];
      if (skip >= 0 && depth > skip) { return; }
      skip = -1;
      if (!idle && layer(at).t === "idle") { skip = depth; if (depth === 0) { left += flame.v[at]; } return; }
      path.length = depth;
      var above = path[depth - 1], start = above ? above.end : sum;
      var frame = { t: name(place), v: flame.v[at], c: layer(at), d: depth + 1, x: start, end: start, above: above };
      if (above) { above.end += frame.v; } else { sum += frame.v; }
      path.push(frame);
      out.push(frame);
    });
    out.unshift({ t: "all", v: sum, d: 0, x: 0, left: left });
    out.forEach(function (frame) { if (frame.d === 1) { frame.above = out[0]; } });
    return out;
  }

  function flame(box, point) {
    var kinds = [];
    if (point.cpu && point.cpu.flame.n.length) {
      kinds.push(["on-CPU", point.cpu.flame, point.cpu.samples, function (n) { return n + " samples"; }]);
    }
    if (point.off && point.off.flame.n.length) {
      kinds.push(["off-CPU", point.off.flame, point.off.total_us, microseconds]);
    }
    if (kinds.length === 0) { return; }
    box.append(make("h3", "", "Flame graph"));
    var row = make("div", "levels"), div = make("div", "flame chart"), now = kinds[0], idle = make("input");
    div.setAttribute("aria-label", "Flame graph");
    idle.type = "checkbox";
    // One frame over the whole width, its callers above it, its callees below.
    function zoom(all, frame) {
      var callers = [], deepest = 0;
      for (var one = frame; one; one = one.above) { callers.push(one); }
      div.replaceChildren();
      all.forEach(function (one) {
        var inside = one.x >= frame.x && one.x + one.v <= frame.x + frame.v && one.d > frame.d;
        var isCaller = callers.indexOf(one) >= 0, width = isCaller ? 1 : one.v / frame.v;
        if (!(inside || isCaller) || width < 0.001) { return; }
        var text = one.d ? one.t : "all: " + now[3](one.v) + (one.left > 0 ? ", idle left out" : "");
        var node = make("div", one.d ? "" : "all", text);
        node.style.left = (isCaller ? 0 : 100 * (one.x - frame.x) / frame.v) + "%";
        node.style.width = 100 * width + "%";
        node.style.top = 19 * one.d + "px";
        if (one.c) { node.style.setProperty("--c", one.c.c); }
        node.dataset.at = one.d;
        node.dataset.value = one.v;
        node.dataset.tip = one.d ? one.t + "\n" + now[3](one.v) + ", " + percent(100 * one.v / now[2]) + "\n" + one.c.t : text;
        node.addEventListener("click", function () { zoom(all, one); });
        div.append(node);
        deepest = Math.max(deepest, one.d);
      });
      div.style.height = 19 * (deepest + 1) + "px";
    }
    function draw() { var all = frames(now[1], idle.checked); zoom(all, all[0]); }
    kinds.forEach(function (kind) {
      var button = make("button", "", kind[0]);
      button.type = "button";
      button.setAttribute("aria-pressed", kind === now);
      button.addEventListener("click", function () {
        now = kind;
        row.querySelectorAll("button").forEach(function (one) { one.setAttribute("aria-pressed", one === button); });
        draw();
      });
      row.append(button);
    });
    idle.addEventListener("change", draw);
    row.append(make("label", "switch", idle, " with idle"));
    box.append(row, make("p", "note", "A click opens a frame, the frames above it lead back. The smallest frames are left out."), div);
    draw();
  }

  function head(box, points) {
    points.forEach(function (one) {
      var line = make("p", "chosen", one.letter ? make("b", "letter", one.letter) : null, make("b", "", one.point.t), " \u00b7 " + one.point.v);
      one.point.w.forEach(function (word) { line.append(" ", make("span", "tag warn", word)); });
      box.append(line);
      if (!one.point.cpu && !one.point.off && !one.point.lat) {
        box.append(make("p", "note", "No profile and no trace of this point."));
      }
    });
  }

  function show(box, places) {
    box.replaceChildren();
    var points = places.map(function (place, at) {
      return { point: data.points[place], letter: places.length > 1 ? LETTERS[at] : "" };
    });
    head(box, points);
    cpuBar(box, points);
    notes(box, points, "cpu");
    symbols(box, points);
    if (points.length === 1) { flame(box, points[0].point); }
    waitsBar(box, points);
    notes(box, points, "off");
    waits(box, points);
    latency(box, points);
    notes(box, points, "lat");
    box.dataset.drawn = places.join(" ");
  }

  function open(place) {
    data = data || JSON.parse(source.textContent);
    var count = Number(place.dataset.closely), chosen = data.start.slice(0, count);
    if (count === 2) { chosen.reverse(); }
    place.id = count === 1 ? "closely-one" : "closely-two";
    var box = make("div", "closely");
    place.replaceChildren();
    chosen.forEach(function (start, at) {
      place.append(chooser(count > 1 ? LETTERS[at] : "", start, function (now) {
        chosen[at] = now;
        show(box, chosen);
      }));
    });
    place.append(box);
    place.dataset.open = "";
    show(box, chosen);
  }

  // Only once a reader comes near.
  var near = new IntersectionObserver(function (seen) {
    seen.forEach(function (one) {
      if (!one.isIntersecting) { return; }
      near.unobserve(one.target);
      open(one.target);
    });
  }, { rootMargin: "600px" });
  document.querySelectorAll("[data-closely]").forEach(function (place) { near.observe(place); });
})();

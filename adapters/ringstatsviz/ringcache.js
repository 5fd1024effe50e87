// The page of statsviz shows plots of its users last, and in no category. Up to v0.8.2 at
// least it fails where a plot has no category, and shows no plots by category then. This
// script puts the plots of caches first and gives them a category.
{
  const parse = JSON.parse;
  JSON.parse = (...args) => {
    const message = parse(...args);
    if (message?.event === "config") {
      message.data.series = arrange(message.data.series);
    }
    return message;
  };

  const isCache = (plot) => plot.name.startsWith("ringcache ");

  const arrange = (plots) => {
    for (const plot of plots) {
      plot.tags ??= [isCache(plot) ? "cache" : "misc"];
      plot.metrics ??= [plot.title]; // what the search looks at
    }
    return [...plots.filter(isCache), ...plots.filter((plot) => !isCache(plot))];
  };

  // The buttons are read when the configuration comes, which is later.
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("tag-cpu").insertAdjacentHTML(
      "beforebegin",
      `<input type="checkbox" class="btn-check" id="tag-cache" data-tag="cache"
         autocomplete="off" checked />
       <label class="btn btn-sm btn-outline-secondary" for="tag-cache"
         title="Alt+Click to show only this category">Cache</label>`,
    );
  });
}

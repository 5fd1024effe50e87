// The page of statsviz shows plots of its users last, without a category. In versions up to v0.8.2
// at least, a plot without a category makes the filter by category fail. This script moves the
// plots of caches to the front and gives them a category.
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
      plot.metrics ??= [plot.title]; // searched by the search box
    }
    return [...plots.filter(isCache), ...plots.filter((plot) => !isCache(plot))];
  };

  // The page reads the buttons when the configuration arrives, which is later.
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

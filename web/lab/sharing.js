/* What can be taken away: the run as a picture, as a sequence diagram, as a scenario; or its address. */
import { download } from "./dom.js";
import { command, inLanguage } from "./laboratory.js";
import { t } from "./texts.js";

async function trace(scenario, format) {
  const files = { "run.scenario": scenario.toString() };
  return (await command(inLanguage(["sim", "--scenario", "run.scenario", "--trace", format]), { files })).out;
}

function name({ algorithm }, ending) { return `${algorithm || "run"}.${ending}`; }

/* In the order of the menu. */
export const formats = {
  address: () => (navigator.clipboard ? navigator.clipboard.writeText(location.href) : prompt(t("share.address"), location.href)),
  svg: async (scenario) => download(name(scenario, "svg"), await trace(scenario, "svg"), "image/svg+xml"),
  png: (scenario, canvas, recorded) => new Promise((resolve) => canvas.toBlob((blob) => { download(name(recorded ?? scenario, "png"), blob); resolve(); }, "image/png")),
  mermaid: async (scenario) => download(name(scenario, "md"), await trace(scenario, "mermaid"), "text/markdown"),
  graph: async (scenario) => download(name(scenario, "network.svg"), await trace(scenario, "graph"), "image/svg+xml"),
  json: async (scenario, canvas, recorded) => download(name(recorded ?? scenario, "json"), recorded ? JSON.stringify(recorded) : await trace(scenario, "json"), "application/json"),
  scenario: async (scenario) => download(name(scenario, "scenario"), scenario.toString(), "text/plain"),
};

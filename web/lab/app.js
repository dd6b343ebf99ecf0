/* The page: which view is seen, and in which language. */
import { readAddress, writeAddress, onAddress } from "./address.js";
import { button, byId } from "./dom.js";
import { algorithmsView } from "./algorithms.js";
import { checkView } from "./checking.js";
import { compareView } from "./comparing.js";
import { exercisesView } from "./exercises.js";
import { museumView } from "./museum.js";
import { oddsView } from "./odds.js";
import { runView } from "./run.js";
import { timeoutView } from "./timeout.js";
import { top, turnTo } from "./top.js";
import { beginTour } from "./tour.js";
import { preferred, setLanguage, t } from "./texts.js";

/* A view is built when it is first seen. */
const VIEWS = {
  check: checkView, compare: compareView, odds: oddsView, timeout: timeoutView, algorithms: algorithmsView, exercises: exercisesView,
  museum: museumView,
};

class Page {
  constructor() {
    this.built = new Map();
    this.run = runView();
    this.run.onCheck = (scenario) => this.show("check", scenario);
    this.header();
  }

  header() {
    this.links = top({ subtitle: t("laboratory"), views: ["run", ...Object.keys(VIEWS)], skipTo: () => byId("diagram").focus(),
                       show: (name) => this.show(name), speak: (name) => { writeAddress({ lang: name }); location.reload(); },
                       more: [button(t("tour"), () => this.tour(), { id: "to-tour", class: "quiet" })] });
  }

  async show(name, what) {
    if (!Object.hasOwn(VIEWS, name)) name = "run";
    this.name = name;
    turnTo(this.links, name);
    writeAddress({ view: name === "run" ? "" : name });
    if (name === "run") return;
    if (!this.built.has(name)) this.built.set(name, Promise.resolve(VIEWS[name](byId("view-" + name), this)));
    const view = await this.built.get(name);
    if (view && view.show) await view.show(what);
  }

  /* A scenario in the diagram, from wherever it comes. */
  async open(text, options = {}) {
    await this.show("run");
    scrollTo(0, 0);
    await this.run.load(text, true);
    if (options.violation) this.run.stage.toViolation();
    byId("diagram").focus({ preventScroll: true });
  }

  tour() { return beginTour(this); }
}

setLanguage(readAddress("lang") || preferred());
const page = new Page();
window.conclave = page; /* for the tests, and for the curious */
onAddress(() => location.reload());
page.run.start().then(() => { document.documentElement.dataset.ready = "yes"; });
page.show(readAddress("view", "run"));
if (readAddress("tour")) page.tour();

#!/usr/bin/env python3
"""Makes the site: build.py --programs FOLDER --out FOLDER

The folder of programs holds flashsteps-app, errata and figures. Prints the path of the first page. The folder --out
is made anew: source/ is what Doxygen reads, html/ the site.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import markdown
import measured
import panels
import tables
from app import ROOT, STAGES, App, Refused

SITE = ROOT / "docs/site"
AWESOME = pathlib.Path("/usr/share/doxygen-awesome-css")
STYLES = ["doxygen-awesome", "doxygen-awesome-sidebar-only", "doxygen-awesome-sidebar-only-darkmode-toggle"]
MATHJAX = pathlib.Path("/usr/share/javascript/mathjax")
MATHJAX_PARTS = ["MathJax.js", "jax/input/TeX", "jax/output/SVG/jax.js", "jax/output/SVG/config.js",
                 "jax/output/SVG/autoload", "jax/output/SVG/fonts/TeX", "jax/element", "extensions"]
DOCUMENTS = ["CONTRIBUTING.md", "CHANGELOG.md", "docs/conventions.md", "docs/virtual_gpu.md", "docs/ptx.md"]
# Of stepper pages, on a machine and there and back; a kernel of one pass has room for several tiles of keys.
STEPPED = {("cpu", False): ("--n", "16", "--d", "8"), ("vgpu", False): ("--n", "32", "--nk", "256", "--d", "64"),
           ("cpu", True): ("--n", "16", "--d", "8"), ("vgpu", True): ("--n", "64", "--d", "64")}


class Build:
    def __init__(self, programs, out):
        self.app, self.programs, self.out = App(programs / "flashsteps-app"), programs, out
        self.source, self.html = out / "source", out / "html"
        self.steppers = {}

    # ---- parts that pages ask for by <!-- site: name arguments -->

    def made(self, name, *arguments):
        """Writes what a page asks for; the name of the HTML file."""
        file = "-".join((name, *arguments)) + ".html"
        path = self.source / file
        if not path.exists():
            path.write_text(getattr(self, "made_" + name)(*arguments))
        return file

    def made_figure(self, name):
        return self.printed("figures", name)

    def printed(self, program, *words):
        done = subprocess.run([self.programs / program, *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise Refused(f"the site needs what {program} {' '.join(words)} prints, but it said "
                          f"\"{done.stderr.strip()}\"; mend that, then try again")
        return done.stdout

    def made_map(self):
        return tables.front_map(self.app)

    def made_timeline(self):
        return tables.timeline(self.app)

    def made_support(self):
        return tables.support(self.app)

    def made_packages(self):
        return tables.packages(self.app)

    def made_measured(self, what, *arguments):
        return measured.TABLES[what](*arguments)

    def made_probe(self):
        return tables.screen(self.app.text("probe"))

    def made_papermap(self, number, paper="FA1"):
        return tables.paper_map_table(self.app, number, paper)

    def made_errata(self):
        return tables.errata(json.loads(self.printed("errata")))

    def made_why(self, number):
        return tables.screen(self.app.text("why", number))

    def compared(self, number, program):
        """What `diff` says of a program and the one that it extends, and the command line's names of the two."""
        stage = self.stage(number)
        before, source = stage.extends(program)
        names = before.short(source), stage.short(program)
        return self.app.json("diff", *names), names, stage.direction(program)

    def made_diff(self, number, program):
        comparison, _, direction = self.compared(number, program)
        return panels.diff_table(*comparison[direction]["sources"], comparison[direction]["diff"])

    def made_delta(self, number, program):
        comparison, names, direction = self.compared(number, program)
        return tables.ledger_delta(comparison[direction], *names, comparison["problem"])

    def made_kerneldiff(self, number, program):
        stage = self.stage(number)
        before, source = stage.extends(program)
        a, b = before.kernel(source), stage.kernel(program)
        return panels.diff_table(a, b, panels.unified_diff(a, b))

    def made_pair(self, number, program):
        return panels.pair_table(self.stage(number), program)

    def made_stepper(self, name):
        return f'<iframe class="stepper" src="{name}" title="stepper"></iframe>\n'

    # ---- pages of a stage

    def stage(self, number):
        return next(stage for stage in STAGES if stage.number == number)

    def change_page(self, stage):
        """Why, and what differs from the step that it extends."""
        text, told = f"# {stage.title}: the change {{#change{stage.number}}}\n", set()
        for program in stage.programs():
            name = stage.short(program)
            if name not in told:
                text += f"\n## {stage.titled(program)}\n" * (name != stage.number) + f"\n<!-- site: why {name} -->\n"
            told.add(name)
            if not stage.extends(program):
                continue
            before, source = stage.extends(program)
            n, anchor = f"{stage.number} {program}", f"change{stage.number}-{program}"
            if stage.cpu(program) and before.cpu(source):
                text += (f"\n## {stage.named(program)}: from {before.titled(source)} {{#{anchor}}}\n\n"
                         f"`./flashsteps diff {before.short(source)} {stage.short(program)}` prints the same.\n\n"
                         f"<!-- site: diff {n} -->\n\n"
                         f"What that does to the traffic:\n\n<!-- site: delta {n} -->\n")
            if stage.kernel(program) and before.kernel(source):
                text += (f"\n## {stage.named(program)}: the kernel {{#{anchor}-kernel}}\n\n"
                         f"<!-- site: kerneldiff {n} -->\n")
        return text

    def pair_page(self, stage):
        text = f"# {stage.title}: CPU and CUDA {{#pair{stage.number}}}\n"
        for program in stage.programs():
            text += f"\n## {stage.named(program)} {{#pair{stage.number}-{program}}}\n\n"
            text += f"<!-- site: pair {stage.number} {program} -->\n" if stage.kernel(program) else "No kernel.\n"
        return text

    def step_page(self, stage):
        text = f"# {stage.title}: step through it {{#step{stage.number}}}\n"
        for name, command in self.steppers[stage.number]:
            text += (f'\n`{command}` made this page; <a href="{name}">open it by itself</a>.\n\n'
                     f"<!-- site: stepper {name} -->\n")
        return text

    def make_steppers(self):
        """Stepper pages beside the site's own, where the program makes any."""
        if not self.app.knows("step"):
            return
        for stage in STAGES:
            for on in ("cpu", "vgpu"):
                if on == "vgpu" and not any(map(stage.kernel, stage.programs())):
                    continue
                name, backward = f"stepper{stage.number}-{on}.html", stage.has_backward()
                words = ["step", stage.number, "--on", on, *STEPPED[on, backward]]
                words += ["--br", "4", "--bc", "4"] * (on == "cpu" and "br and bc" in stage.facts["options"])
                words += ["--backward"] * backward + ["--out"]
                self.app.text(*words, name, folder=self.html)
                self.steppers.setdefault(stage.number, []).append((name, " ".join(["./flashsteps", *words, name])))

    # ---- the whole

    def write_page(self, path, text):
        page = markdown.page_of(path) or pathlib.PurePath(path).stem
        (self.source / f"{page}.md").write_text(markdown.converted(text, path, self.made))

    def write_pages(self):
        for path in DOCUMENTS + [str(p.relative_to(ROOT)) for p in sorted(SITE.glob("*.md"))]:
            self.write_page(path, (ROOT / path).read_text())
        for stage in STAGES:
            path = f"stages/{stage.id}/lesson.md"
            self.write_page(path, self.with_neighbours(stage, (ROOT / path).read_text()))
            for page, text in (("change", self.change_page(stage)), ("pair", self.pair_page(stage))):
                self.write_generated(page + stage.number, text)
            if stage.number in self.steppers:
                self.write_generated("step" + stage.number, self.step_page(stage))

    def write_generated(self, page, text):
        text = markdown.MADE.sub(lambda m: f"\\htmlinclude[block] {self.made(*m.group(1).split())}", text)
        (self.source / f"{page}.md").write_text(text)

    def with_neighbours(self, stage, lesson):
        """The lesson with links to the stage's other pages under its title."""
        links = [f"[the change](@ref change{stage.number})", f"[CPU and CUDA](@ref pair{stage.number})"]
        links += [f"[step through it](@ref step{stage.number})"] * (stage.number in self.steppers)
        links.append("[for teachers](@ref teachers)")
        title, rest = lesson.split("\n", 1)
        return f"{title}\n\n{' · '.join(links)}\n{rest}"

    def layout(self):
        """Navigation: the lessons first, then the reference."""
        def tab(page, title):
            return f'<tab type="user" url="@ref {page}" title="{title}"/>'
        stages = ""
        for stage in STAGES:
            stages += (f'<tab type="usergroup" url="@ref lesson{stage.number}" title="{stage.title}">' +
                       tab(f"change{stage.number}", "The change") + tab(f"pair{stage.number}", "CPU and CUDA") +
                       (tab(f"step{stage.number}", "Step through it") if stage.number in self.steppers else "") +
                       "</tab>")
        reference = (tab("conventions", "Conventions") + tab("virtualgpu", "The virtual GPU") +
                     tab("ptx", "Instructions of ptx") + '<tab type="namespacelist" title="Namespaces"/>'
                     '<tab type="classlist" title="Classes"/><tab type="filelist" title="Files"/>')
        return ('<doxygenlayout version="1.0"><navindex><tab type="mainpage" title="Start here"/>' + stages +
                tab("generations", "The four generations") + tab("papermap", "Paper map") + tab("errata", "Errata") +
                tab("measured", "Measured") +
                tab("teachers", "For teachers") +
                f'<tab type="usergroup" url="@ref conventions" title="Reference">{reference}</tab>' +
                tab("contributing", "Contributing") + "</navindex></doxygenlayout>\n")

    def doxygen(self):
        header = self.out / "header.html"
        run(["doxygen", "-w", "html", header, self.out / "footer.html", self.out / "unused.css"], self.out)
        scripts = "".join(f'<script src="$relpath^{name}.js"></script>\n' for name in
                          ("doxygen-awesome-darkmode-toggle",))
        header.write_text(header.read_text().replace("</head>", f"{scripts}<script>DoxygenAwesomeDarkModeToggle.init()"
                                                     "</script>\n</head>"))
        (self.out / "layout.xml").write_text(self.layout())
        (self.out / "Doxyfile").write_text(f"""
@INCLUDE_PATH      = {SITE}
@INCLUDE           = Doxyfile
INPUT              = {self.source} {ROOT}/sim {ROOT}/stages {ROOT}/cuda/ptx {ROOT}/cuda/common
EXCLUDE_PATTERNS   = */lesson.md */README.md
FILTER_PATTERNS    = "*.hpp=sed -f {SITE}/head_comment.sed"
EXAMPLE_PATH       = {self.source}
STRIP_FROM_PATH    = {ROOT} {self.source}
USE_MDFILE_AS_MAINPAGE = {self.source}/index.md
LAYOUT_FILE        = {self.out}/layout.xml
HTML_HEADER        = {header}
HTML_EXTRA_STYLESHEET = {' '.join(f'{AWESOME}/{name}.css' for name in STYLES)} {SITE}/style.css
MATHJAX_CODEFILE   = {SITE}/mathjax.js
HTML_EXTRA_FILES   = {AWESOME}/doxygen-awesome-darkmode-toggle.js
""")
        run(["doxygen", self.out / "Doxyfile"], self.out)

    def mathjax(self):
        for part in MATHJAX_PARTS:
            to = self.html / "mathjax" / part
            to.parent.mkdir(parents=True, exist_ok=True)
            copy = shutil.copytree if (MATHJAX / part).is_dir() else shutil.copy
            copy(MATHJAX / part, to)

    def site(self):
        shutil.rmtree(self.out, ignore_errors=True)
        self.source.mkdir(parents=True)
        self.html.mkdir()
        self.make_steppers()
        self.write_pages()
        self.doxygen()
        self.mathjax()
        return self.html / "index.html"


def run(command, folder):
    try:
        done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise Refused(f"the site was asked for, but there is no {command[0]} here; install it, then try again")
    if done.returncode != 0 or "warning:" in done.stderr:
        raise Refused(f"the site was asked for, but {command[0]} was not content:\n{done.stdout}{done.stderr}")


def main():
    parser = argparse.ArgumentParser(description="builds the site")
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="of flashsteps-app, errata and figures")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder that is made anew")
    asked = parser.parse_args()
    try:
        print(Build(asked.programs.resolve(), asked.out.resolve()).site())
    except Refused as refused:
        print(f"flashsteps: {refused}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

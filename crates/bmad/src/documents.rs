//! Which documents a project has, in the places and under the names of every era: a whole file, a folder of parts with an
//! `index.md`, or run folders with a date, of which the newest counts.
//!
//! The content is read by the readers of each kind; here are only paths, titles and the progress of their workflows. Folders
//! are searched a few levels deep and only up to a limit, since a project may keep anything there.

use serde::Serialize;

use crate::{
    config::Folders,
    keys::StoryKey,
    page::Page,
    problem::Problem,
    shelf::{self, Shelf},
    story::scalars,
    yaml,
};

/// The kinds of documents that BMAD's workflows write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Prd,
    Architecture,
    Ux,
    Epics,
    ProductBrief,
    Research,
    TechSpec,
    /// A folder with a `SPEC.md`; its stories are among its parts.
    Spec,
    /// The file of a story.
    Story,
    /// The spec that `bmad-build` works from, or a result that it left without one.
    StorySpec,
    Readiness,
    Trace,
    TestDesign,
    Retro,
    Deferred,
    ProjectContext,
    ChangeProposal,
    /// The status file of the alphas.
    WorkflowStatus,
}

/// One document of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Document {
    pub path: String,
    pub kind: Kind,
    pub title: Option<String>,
    /// The progress from `stepsCompleted` in the front matter: numbers in early eras, names of step files later.
    pub steps_completed: Vec<String>,
    /// Whether there is only white space below the front matter.
    pub empty: bool,
    /// The other files that the document consists of.
    pub sharded: Vec<String>,
}

/// All documents of a project; of each kind, the one that counts comes first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Documents {
    pub found: Vec<Document>,
    pub problems: Vec<Problem>,
}

impl Documents {
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Document> {
        self.found.iter().filter(move |document| document.kind == kind)
    }

    /// The document of a kind that counts.
    pub fn first(&self, kind: Kind) -> Option<&Document> {
        self.of(kind).next()
    }

    pub fn prd(&self) -> Option<&Document> {
        self.first(Kind::Prd)
    }

    pub fn ux(&self) -> Option<&Document> {
        self.first(Kind::Ux)
    }

    pub fn epics(&self) -> Option<&Document> {
        self.first(Kind::Epics)
    }

    pub fn readiness(&self) -> Option<&Document> {
        self.first(Kind::Readiness)
    }
}

impl Document {
    /// The paths of the document and its parts, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.path.as_str()).chain(self.sharded.iter().map(String::as_str))
    }
}

/// Finds all documents of a project.
pub fn find(shelf: &dyn Shelf, folders: &Folders) -> Documents {
    let mut finder = Finder { shelf, left: MOST_NAMES, documents: Documents::default() };
    for kind in [Kind::Prd, Kind::Architecture, Kind::Ux, Kind::Epics, Kind::ProductBrief] {
        finder.planned(kind, folders);
    }
    finder.others(folders);
    finder.specs(folders);
    if finder.left == 0 {
        let what = format!("the folders hold more than {MOST_NAMES} names; the rest is not looked at");
        let problem = Problem::warning("documents-many", &folders.output, what);
        finder.documents.problems.push(problem.todo("keep BMAD's output in a folder of its own"));
    }
    finder.documents
}

/// How many names are looked at.
const MOST_NAMES: usize = 20_000;

struct Finder<'s> {
    shelf: &'s dyn Shelf,
    left: usize,
    documents: Documents,
}

/// One of several files that could be the document.
struct Candidate {
    path: String,
    sharded: Vec<String>,
    form: Form,
}

/// How a document is stored. The order is that of the eras.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Whole,
    Sharded,
    Run,
}

impl Finder<'_> {
    /// The files and directories of a directory; directories without their `/`.
    fn names(&mut self, folder: &str) -> (Vec<String>, Vec<String>) {
        let names = self.shelf.names(folder);
        let names = names.into_iter().take(self.left).filter(|name| !name.starts_with('.'));
        let (folders, files): (Vec<String>, Vec<String>) = names.partition(|name| name.ends_with('/'));
        self.left = self.left.saturating_sub(folders.len() + files.len());
        (files, folders.into_iter().map(|name| name.trim_end_matches('/').to_string()).collect())
    }

    /// Finds a document of planning: the one that counts first, the alternatives behind it.
    fn planned(&mut self, kind: Kind, folders: &Folders) {
        let mut candidates = self.candidates(kind, &folders.planning);
        // Before there were folders for planning, documents were in the output folder or with the project's documentation.
        for elsewhere in [&folders.output, &folders.knowledge] {
            if candidates.is_empty() && *elsewhere != folders.planning {
                candidates = self.candidates(kind, elsewhere);
            }
        }
        self.remark(kind, &candidates);
        for Candidate { path, sharded, .. } in candidates {
            self.add(kind, path, sharded);
        }
    }

    /// All candidates for a document in one directory, the one that counts first.
    fn candidates(&mut self, kind: Kind, folder: &str) -> Vec<Candidate> {
        let (files, subfolders) = self.names(folder);
        let mut whole: Vec<String> =
            files.into_iter().filter(|name| is_markdown(name) && is_named(kind, name)).collect();
        // The workflow's own name wins, then the newest date; the name makes the order stable.
        whole.sort_by_key(|name| (!is_exact(kind, name), std::cmp::Reverse(date(name)), name.clone()));
        let mut found = Vec::new();
        // Epics may be one file each, without a list of them; together they are one document.
        if kind == Kind::Epics && whole.len() > 1 && whole.iter().all(|name| epic_number(name).is_some()) {
            whole.sort_by_key(|name| epic_number(name));
            let mut paths = whole.iter().map(|name| joined(folder, name));
            let path = paths.next().unwrap_or_default();
            found.push(Candidate { path, sharded: paths.collect(), form: Form::Whole });
        } else {
            found.extend(whole.iter().map(|name| Candidate {
                path: joined(folder, name),
                sharded: Vec::new(),
                form: Form::Whole,
            }));
        }
        let mut runs = Vec::new();
        for name in subfolders.iter().filter(|name| is_named(kind, name)) {
            let (parts, run) = self.under(kind, &joined(folder, name));
            found.extend(parts);
            runs.extend(run);
        }
        runs.sort_by_key(|(name, candidate): &(String, Candidate)| {
            (std::cmp::Reverse(date(name)), std::cmp::Reverse(candidate.path.clone()))
        });
        found.extend(runs.into_iter().map(|(_, candidate)| candidate));
        // BMAD itself prefers the whole file; only for UX does the pair of files of late eras come before what older ones
        // left.
        if kind == Kind::Ux {
            found.sort_by_key(|candidate| candidate.form != Form::Run);
        }
        found
    }

    /// The candidate for a folder of parts, and the candidates of its run folders.
    fn under(&mut self, kind: Kind, folder: &str) -> (Option<Candidate>, Vec<(String, Candidate)>) {
        let (files, subfolders) = self.names(folder);
        let files: Vec<String> = files.into_iter().filter(|name| is_markdown(name)).collect();
        let parts = main_of(kind, &files).map(|main| candidate(folder, main, &files, Form::Sharded));
        let mut runs = Vec::new();
        for name in subfolders {
            let inside = joined(folder, &name);
            let files: Vec<String> =
                self.names(&inside).0.into_iter().filter(|name| is_markdown(name)).collect();
            // A run folder has the document under its own name; a folder of other parts does not.
            if let Some(main) = files.iter().find(|file| is_exact(kind, file)) {
                runs.push((name, candidate(&inside, main, &files, Form::Run)));
            }
        }
        (parts, runs)
    }

    /// Reports which other files could have been the document.
    fn remark(&mut self, kind: Kind, candidates: &[Candidate]) {
        let Some((first, others)) = candidates.split_first().filter(|(_, others)| !others.is_empty()) else {
            return;
        };
        let forms: std::collections::BTreeSet<Form> =
            candidates.iter().map(|candidate| candidate.form).collect();
        let names: Vec<&str> = others.iter().map(|other| other.path.as_str()).collect();
        let what = format!("this one counts; there is also {}", names.join(", "));
        let problem = if forms.contains(&Form::Whole) && forms.len() > 1 {
            // One may have been written after the other was split, so it is unknown which one is right.
            let why = "the same document stands there in two forms, and agents may read either";
            Problem::warning("document-twice", &first.path, what).why(why).todo("keep one of them")
        } else if kind == Kind::ProductBrief || first.form == Form::Run {
            Problem::note("document-older", &first.path, what)
        } else {
            Problem::note("document-several", &first.path, what)
        };
        self.documents.problems.push(problem);
    }

    /// Finds the documents that are recognized by their name alone.
    fn others(&mut self, folders: &Folders) {
        // The test architect nests its output; of the project's root only the top level is searched.
        let mut places: Vec<(&str, usize)> = vec![
            (&folders.planning, 1),
            (&folders.implementation, 1),
            (&folders.tests, 2),
            (&folders.output, 0),
            (&folders.knowledge, 0),
            ("", 0),
        ];
        places.dedup();
        let mut found: Vec<(Kind, String)> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for (folder, depth) in places {
            let mut files = Vec::new();
            self.walk(folder, depth, &mut files);
            for path in files {
                if let Some(kind) =
                    // At the root only the context for agents counts; other names there belong to the project.
                    kind_of(&path).filter(|kind| !folder.is_empty() || *kind == Kind::ProjectContext)
                    && seen.insert(path.clone())
                {
                    found.push((kind, path));
                }
            }
        }
        // The newest of a kind comes first; stories are sorted by their keys.
        found.sort_by_key(|(kind, path)| {
            let key = crate::story::key_of(path).filter(|_| *kind == Kind::Story);
            (*kind, key, std::cmp::Reverse(date(name_of(path))), path.clone())
        });
        for (kind, path) in found {
            self.add(kind, path, Vec::new());
        }
    }

    fn walk(&mut self, folder: &str, depth: usize, files: &mut Vec<String>) {
        let (own, subfolders) = self.names(folder);
        files.extend(own.iter().map(|name| joined(folder, name)));
        for name in subfolders.iter().filter(|_| depth > 0) {
            self.walk(&joined(folder, name), depth - 1, files);
        }
    }

    /// Finds the folders with a `SPEC.md`.
    fn specs(&mut self, folders: &Folders) {
        let mut parents: Vec<String> = [&folders.output, &folders.planning, &folders.implementation]
            .iter()
            .map(|folder| joined(folder, "specs"))
            .collect();
        parents.dedup();
        for parent in parents {
            for name in self.names(&parent).1 {
                let folder = joined(&parent, &name);
                let (files, subfolders) = self.names(&folder);
                if !files.iter().any(|name| name == "SPEC.md") {
                    continue;
                }
                let mut parts: Vec<String> =
                    files.iter().filter(|name| *name == "stories.yaml").cloned().collect();
                if subfolders.iter().any(|name| name == "stories") {
                    let stories = self.names(&joined(&folder, "stories")).0;
                    parts.extend(
                        stories.iter().filter(|name| is_markdown(name)).map(|name| joined("stories", name)),
                    );
                }
                let parts = parts.iter().map(|name| joined(&folder, name)).collect();
                self.add(Kind::Spec, joined(&folder, "SPEC.md"), parts);
                if files.iter().any(|name| name == "RETROSPECTIVE.md") {
                    self.add(Kind::Retro, joined(&folder, "RETROSPECTIVE.md"), Vec::new());
                }
            }
        }
    }

    fn add(&mut self, kind: Kind, path: String, sharded: Vec<String>) {
        let mut document =
            Document { path, kind, title: None, steps_completed: Vec::new(), empty: false, sharded };
        // There are many documents of these kinds, and they have readers of their own.
        let skipped = matches!(kind, Kind::Story | Kind::StorySpec | Kind::Research);
        if !skipped && let Some(text) = shelf::read(self.shelf, &document.path, &mut self.documents.problems)
        {
            let page = Page::of(&text);
            describe(&page, &mut document);
            self.documents.problems.extend(broken_front(&page, &document.path));
            // The first file of a folder of parts may be a bare list of them.
            document.empty =
                page.lines.iter().all(|line| line.kind == crate::page::Kind::Front || line.is_blank());
            if document.empty {
                let problem = Problem::warning("document-empty", &document.path, "the document is empty");
                self.documents.problems.push(problem.todo("write it, or take it away"));
            }
        }
        self.documents.found.push(document);
    }
}

/// The problem of front matter that is not valid YAML: a workflow can no longer read its own progress there.
fn broken_front(page: &Page<'_>, path: &str) -> Option<Problem> {
    let broken = yaml::parse(page.front_matter()?).err()?;
    let problem =
        Problem::warning("document-front-matter", path, format!("the front matter: {}", broken.what));
    // The front matter begins behind the first mark.
    let problem = problem.at(broken.line.unwrap_or(1) + 1);
    Some(problem.why("workflows read there how far they have come").todo("mend the line"))
}

fn describe(page: &Page<'_>, document: &mut Document) {
    let headings = page.lines.iter().filter_map(|line| line.heading());
    document.title = headings.filter(|(level, _)| *level == 1).map(|(_, title)| title.to_string()).next();
    let Some(Ok(front)) = page.front_matter().map(yaml::parse) else { return };
    let steps = ["stepsCompleted", "steps_completed"].iter().find_map(|key| front.get(key));
    document.steps_completed = steps.map(scalars).unwrap_or_default();
    let titled = || front.get("title").and_then(yaml::Node::text).map(str::to_string);
    document.title = document.title.take().or_else(titled).filter(|title| !title.is_empty());
}

fn candidate(folder: &str, main: &str, files: &[String], form: Form) -> Candidate {
    let others = files.iter().filter(|name| *name != main).map(|name| joined(folder, name));
    Candidate { path: joined(folder, main), sharded: others.collect(), form }
}

/// The file that stands for a folder of parts.
fn main_of(kind: Kind, files: &[String]) -> Option<&str> {
    let index = files.iter().find(|name| name.eq_ignore_ascii_case("index.md"));
    let exact = files.iter().find(|name| is_exact(kind, name));
    index.or(exact).or_else(|| files.first()).map(String::as_str)
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_string() } else { format!("{folder}/{name}") }
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_markdown(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".md")
}

/// Whether a file has the name that the workflow gives it.
fn is_exact(kind: Kind, name: &str) -> bool {
    let names: &[&str] = match kind {
        Kind::Prd => &["prd.md"],
        Kind::Architecture => &["architecture.md", "architecture-spine.md"],
        Kind::Ux => &["ux-design-specification.md", "ux-design.md", "design.md", "experience.md"],
        Kind::Epics => &["epics.md", "epics-and-stories.md"],
        Kind::ProductBrief => &["product-brief.md", "brief.md"],
        _ => &[],
    };
    names.contains(&name.to_ascii_lowercase().as_str())
}

/// Whether a file or folder of planning is named after a kind, and is not a report about it.
fn is_named(kind: Kind, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let words: Vec<&str> =
        name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    const ABOUT: [&str; 8] =
        ["validation", "readiness", "report", "addendum", "review", "checklist", "retro", "context"];
    if words.iter().any(|word| ABOUT.contains(word)) {
        return false;
    }
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
    match kind {
        Kind::Prd => has(&["prd", "prds"]),
        Kind::Architecture => has(&["architecture", "architectures", "arch"]),
        // Whole words are compared: `linux.md` is not about UX.
        Kind::Ux => has(&["ux"]),
        Kind::Epics => has(&["epic", "epics"]) && !has(&["test", "spec"]),
        Kind::ProductBrief => has(&["brief", "briefs"]),
        _ => false,
    }
}

/// The number in `epic-3.md` or `epic-3-paying.md`.
fn epic_number(name: &str) -> Option<u32> {
    let rest = name.to_ascii_lowercase();
    let rest = rest.strip_prefix("epic-")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The kind of a file by its name.
fn kind_of(path: &str) -> Option<Kind> {
    let name = name_of(path).to_ascii_lowercase();
    let stem = name.strip_suffix(".md");
    if name == "bmm-workflow-status.yaml" {
        return Some(Kind::WorkflowStatus);
    }
    if name.starts_with("gate-decision") && name.ends_with(".json") {
        return Some(Kind::Trace);
    }
    let stem = stem?;
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| stem.starts_with(prefix));
    // The order matters: the names of retrospectives and specs would also pass for stories.
    Some(match stem {
        "deferred-work" => Kind::Deferred,
        "project-context" => Kind::ProjectContext,
        _ if starts(&["implementation-readiness"]) => Kind::Readiness,
        _ if starts(&["traceability", "trace-"]) => Kind::Trace,
        _ if starts(&["test-design"]) => Kind::TestDesign,
        _ if starts(&["sprint-change-proposal"]) => Kind::ChangeProposal,
        _ if starts(&["tech-spec"]) => Kind::TechSpec,
        _ if is_retro(stem) => Kind::Retro,
        _ if starts(&["bmad-build-auto-result", "bmad-dev-auto-result", "spec-"]) => Kind::StorySpec,
        _ if StoryKey::parse(stem).is_some() => Kind::Story,
        _ if path.rsplit('/').nth(1) == Some("research") => Kind::Research,
        _ => return None,
    })
}

/// Whether a name is one of `epic-3-retro-2026-01-02`, `epic-3-retrospective` and `retrospective-3`.
fn is_retro(stem: &str) -> bool {
    let mut words = stem.split('-');
    words.any(|word| word == "retro" || word == "retrospective")
}

/// The last date in a name as year, month and day, so that dates sort as text; empty if there is none.
fn date(name: &str) -> String {
    let parts: Vec<&str> =
        name.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty()).collect();
    // Dates are written as `20260102`, `2026-01-02` or, by some agents, `01-02-2026`.
    let whole = parts.iter().rev().find(|part| part.len() == 8 && part.starts_with("20"));
    let triple = parts.windows(3).rev().find_map(|window| match window {
        [year, month, day] if (year.len(), month.len(), day.len()) == (4, 2, 2) => {
            Some(format!("{year}{month}{day}"))
        }
        [month, day, year] if (month.len(), day.len(), year.len()) == (2, 2, 4) => {
            Some(format!("{year}{month}{day}"))
        }
        _ => None,
    });
    triple.or_else(|| whole.map(ToString::to_string)).unwrap_or_default()
}

//! Specs of late eras: `stories.yaml` beside a `SPEC.md`, which lists the stories of a spec, and the spec files that
//! `bmad-build` and `bmad-build-auto` work from and write their result into.
//!
//! The status of a story is in its own spec file, never in `stories.yaml`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    keys::StoryStatus,
    page::{Page, plain},
    problem::Problem,
    story::{Said, scalars},
    yaml::{self, Form, Node},
};

/// The states of a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SpecStatus {
    Draft,
    ReadyForDev,
    InProgress,
    InReview,
    Done,
    /// The run stopped and states the reason.
    Blocked,
}

impl SpecStatus {
    pub fn parse(said: &str) -> Option<SpecStatus> {
        let said =
            said.trim().trim_matches(['*', '`', '_', '"', '\'']).to_lowercase().replace([' ', '_'], "-");
        Some(match said.as_str() {
            "draft" => SpecStatus::Draft,
            "ready-for-dev" => SpecStatus::ReadyForDev,
            "in-progress" => SpecStatus::InProgress,
            "in-review" => SpecStatus::InReview,
            "done" => SpecStatus::Done,
            "blocked" => SpecStatus::Blocked,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            SpecStatus::Draft => "draft",
            SpecStatus::ReadyForDev => "ready-for-dev",
            SpecStatus::InProgress => "in-progress",
            SpecStatus::InReview => "in-review",
            SpecStatus::Done => "done",
            SpecStatus::Blocked => "blocked",
        }
    }
}

/// The name that a spec has for a state of the board. `bmad-build-auto` stops at a word that it does not know, and `review`
/// is one.
impl From<StoryStatus> for SpecStatus {
    fn from(status: StoryStatus) -> SpecStatus {
        match status {
            StoryStatus::Backlog => SpecStatus::Draft,
            StoryStatus::ReadyForDev => SpecStatus::ReadyForDev,
            StoryStatus::InProgress => SpecStatus::InProgress,
            StoryStatus::Review => SpecStatus::InReview,
            StoryStatus::Done => SpecStatus::Done,
        }
    }
}

/// The stories of a spec, in the order in which they are built.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stories {
    pub stories: Vec<SpecStory>,
    pub problems: Vec<Problem>,
}

/// One entry of `stories.yaml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpecStory {
    pub id: String,
    pub title: String,
    pub description: String,
    /// Whether the user reviews the story's spec before it is built.
    pub spec_checkpoint: bool,
    /// Whether nothing else runs after this story until the user agrees.
    pub done_checkpoint: bool,
    /// Text that is added to the prompt unchanged.
    pub invoke_dev_with: String,
    pub line: usize,
}

/// Reads `stories.yaml`.
pub fn read(path: &str, text: &str) -> Stories {
    let mut all = Stories::default();
    let node = match yaml::parse(text) {
        Ok(node) => node,
        Err(broken) => {
            let problem = Problem::error("stories-broken", path, broken.what).todo("mend the file");
            let problem = broken.line.into_iter().fold(problem, Problem::at);
            all.problems.push(broken.column.into_iter().fold(problem, Problem::column));
            return all;
        }
    };
    if !matches!(node.form, Form::List(_) | Form::Nothing) {
        let problem = Problem::error("stories-no-list", path, "this is no list of stories").at(node.line);
        all.problems.push(problem.todo("write one entry a story: `- id: \"1\"`, title, description"));
    }
    for item in node.items() {
        if let Some(story) = spec_story(path, text, item, &mut all.problems) {
            all.stories.push(story);
        }
    }
    // Clashes are only visible once all ids are known.
    clashes(path, &all.stories, &mut all.problems);
    all
}

/// Reads one story; a story without an id cannot be used and is left out.
fn spec_story(path: &str, text: &str, item: &Node, problems: &mut Vec<Problem>) -> Option<SpecStory> {
    let said = |key: &str| {
        item.get(key).and_then(Node::text).map(|text| text.trim().to_string()).unwrap_or_default()
    };
    // All missing keys are named in one problem, so that the user writes them in one go.
    let missing: Vec<&str> =
        ["id", "title", "description"].into_iter().filter(|key| said(key).is_empty()).collect();
    if !missing.is_empty() {
        let what = format!("this story has no {}", missing.join(", no "));
        problems.push(Problem::error("stories-incomplete", path, what).at(item.line).todo("write it"));
    }
    // The source text shows whether the id was quoted; the parsed value does not.
    if let Some(node) = item.get("id") {
        let bytes = node.span.clone().and_then(|span| text.get(span)).unwrap_or_default();
        if !bytes.starts_with(['"', '\'']) && node.text().is_some_and(|id| id.parse::<f64>().is_ok()) {
            let problem =
                Problem::warning("stories-id-number", path, format!("the id {bytes} is not quoted"));
            let why = "it is read as a number, and then no story's file has its name";
            problems.push(problem.at(node.line).why(why).todo(format!("write \"{bytes}\"")));
        }
    }
    let id = said("id");
    // The id becomes part of a file name, where a slash or a space would break the lookup.
    if let Some(odd) = id.chars().find(|c| !(c.is_ascii_alphanumeric() || *c == '-')) {
        let what = format!("the id {id:?} has {odd:?}; letters, digits and dashes are allowed");
        problems
            .push(Problem::error("stories-id-odd", path, what).at(item.line).why("it begins a file's name"));
    }
    // A status in two places would drift apart, and `bmad-build-auto` only reads the spec file.
    if let Some(entry) = item.entries().iter().find(|entry| entry.key == "status") {
        let problem = Problem::warning("stories-status", path, "a status stands here").at(entry.line);
        problems.push(problem.why("how far a story is stands in its own file").todo("take it out"));
    }
    // An incomplete story is kept as long as it has an id: its file may have the rest.
    (!id.is_empty()).then(|| SpecStory {
        title: said("title"),
        description: said("description"),
        spec_checkpoint: said("spec_checkpoint").eq_ignore_ascii_case("true"),
        done_checkpoint: said("done_checkpoint").eq_ignore_ascii_case("true"),
        invoke_dev_with: said("invoke_dev_with"),
        line: item.line,
        id,
    })
}

/// Reports an id that occurs twice, and an id whose files also match the pattern of another id.
fn clashes(path: &str, stories: &[SpecStory], problems: &mut Vec<Problem>) {
    let mut first = std::collections::BTreeMap::new();
    for story in stories {
        if let Some(line) = first.insert(story.id.as_str(), story.line) {
            let what = format!("the id {:?} stands on line {line} already", story.id);
            problems
                .push(Problem::error("stories-id-twice", path, what).at(story.line).todo("give it another"));
        }
    }
    for story in stories {
        // The files of story `3-2` begin with `3-`, which is also the pattern of story `3`.
        let dashes = story.id.match_indices('-').map(|(at, _)| &story.id[..at]);
        if let Some(other) = dashes.into_iter().find(|prefix| first.contains_key(prefix)) {
            let what = format!("the ids {other:?} and {:?} cannot be told apart by their files", story.id);
            problems.push(
                Problem::error("stories-id-prefix", path, what).at(story.line).todo("give it another id"),
            );
        }
    }
}

/// The fields of a spec file beyond those of every story ([`crate::story::read_story`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spec {
    pub title: Option<String>,
    /// feature, bugfix, refactor or chore.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub created: Option<String>,
    pub status: Option<SpecStatus>,
    /// oneshot or dispatch; `bmad-build` only.
    pub route: Option<String>,
    pub review_loop_iteration: Option<u32>,
    pub followup_review_recommended: Option<bool>,
    pub context: Vec<String>,
    pub warnings: Vec<String>,
    pub deferred: Vec<Deferred>,
    pub result: Option<RunResult>,
    pub problems: Vec<Problem>,
}

/// Something that the review of a spec left for later, from its front matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deferred {
    pub summary: String,
    pub evidence: String,
    pub place: Option<String>,
    pub severity: Option<String>,
    pub line: usize,
}

/// The section `Auto Run Result`, or the content of a separate result file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunResult {
    pub status: Option<Said>,
    /// One of BMAD's own sentences, such as `intent gap`.
    pub blocking_condition: Option<Said>,
    pub line: usize,
}

/// Reads a spec file.
pub fn spec(path: &str, text: &str) -> Spec {
    let page = Page::of(text);
    let mut spec = Spec { result: result(&page), ..Spec::default() };
    let front = match page.front_matter().map(yaml::parse) {
        Some(Ok(front)) => front,
        // The front matter begins behind the first mark, so its lines are one further down in the file.
        Some(Err(broken)) => {
            let what = format!("in the front matter: {}", broken.what);
            let line = broken.line.map_or(1, |line| line + 1);
            spec.problems.push(Problem::error("front-matter-broken", path, what).at(line).todo("mend it"));
            return spec;
        }
        None => return spec,
    };
    let all = |key: &str| front.get(key).map(scalars).unwrap_or_default();
    // Some agents write a single value as a list of one.
    let one = |key: &str| all(key).into_iter().next();
    spec.title = one("title");
    spec.kind = one("type");
    spec.created = one("created");
    spec.route = one("route");
    spec.review_loop_iteration = one("review_loop_iteration").and_then(|count| count.parse().ok());
    spec.followup_review_recommended = one("followup_review_recommended").and_then(|said| said.parse().ok());
    spec.context = all("context");
    spec.warnings = all("warnings");
    spec.deferred =
        front.get("deferred").map(|list| list.items().iter().map(deferred).collect()).unwrap_or_default();
    if let Some(said) = one("status") {
        spec.status = SpecStatus::parse(&said);
        if spec.status.is_none() {
            let line = front.get("status").map_or(1, |node| node.line + 1);
            let what = format!("{said:?} is no status of a spec");
            let problem = Problem::error("spec-status-unknown", path, what).at(line);
            let todo = "use one of draft, ready-for-dev, in-progress, in-review, done, blocked";
            spec.problems.push(problem.why("bmad-build-auto stops at a word it does not know").todo(todo));
        }
    }
    spec
}

/// Reads a deferral; older runs write a plain sentence instead of a mapping.
fn deferred(item: &Node) -> Deferred {
    let said = |key: &str| item.get(key).and_then(Node::text).map(|text| text.trim().to_string());
    let summary = said("summary").or_else(|| item.text().map(|text| text.trim().to_string()));
    Deferred {
        summary: summary.unwrap_or_default(),
        evidence: said("evidence").unwrap_or_default(),
        place: said("location").filter(|place| !place.is_empty()),
        severity: said("severity").filter(|severity| !severity.is_empty()),
        line: item.line + 1,
    }
}

/// Reads the section `Auto Run Result`; a file that holds only a result has it under its title.
fn result(page: &Page<'_>) -> Option<RunResult> {
    let section = page
        .section(|title| title == "auto run result")
        .or_else(|| page.section(|title| title.ends_with("auto result")))?;
    let mut result = RunResult { line: page.lines[section.heading].number, ..RunResult::default() };
    for line in page.lines[section.lines].iter().filter(|line| line.is_prose()) {
        let text = line.text.trim().trim_start_matches(['-', '*', '+', ' ']);
        let Some((label, value)) = text.split_once(':') else { continue };
        // Agents decorate the value: `Blocking condition: **intent gap**`.
        let value = value.trim().trim_matches(['*', '`', ' ']);
        let said = || (!value.is_empty()).then(|| Said { text: value.to_string(), line: line.number });
        match plain(label).as_str() {
            "status" if result.status.is_none() => result.status = said(),
            "blocking condition" if result.blocking_condition.is_none() => result.blocking_condition = said(),
            _ => {}
        }
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(text: &str) -> String {
        let Stories { stories, problems } = read("stories.yaml", text);
        let one = |story: SpecStory| {
            let SpecStory { id, title, spec_checkpoint, done_checkpoint, invoke_dev_with, line, .. } = story;
            format!("{line} {id} {title:?} {spec_checkpoint} {done_checkpoint} {invoke_dev_with:?}")
        };
        let problems =
            problems.iter().map(|problem| format!("{:?} {} {problem}", problem.weight, problem.rule));
        stories.into_iter().map(one).chain(problems).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_stories_of_a_spec_in_their_order_and_what_breaks_them() {
        let good = "- id: \"1\"\n  title: Limit\n  description: >-\n    Put a limit\n    in front.\n\
                    \x20 spec_checkpoint: true\n  invoke_dev_with: use it\n\
                    - id: \"2\"\n  title: Show\n  description: x\n";
        insta::assert_snapshot!(drawn(good), @r#"
        1 1 "Limit" true false "use it"
        8 2 "Show" false false ""
        "#);
        let bad = "- id: 1\n  title: a\n  description: b\n  status: done\n- id: \"3\"\n  title: a\n\
            - id: \"3-2\"\n  title: a\n  description: b\n\
                   - id: \"3-2\"\n  title: a\n  description: b\n- id: \"a/b\"\n  title: a\n  description: b\n- text\n";
        insta::assert_snapshot!(drawn(bad), @r#"
        1 1 "a" false false ""
        5 3 "a" false false ""
        7 3-2 "a" false false ""
        10 3-2 "a" false false ""
        13 a/b "a" false false ""
        Warning stories-id-number stories.yaml:1: the id 1 is not quoted
        Warning stories-status stories.yaml:4: a status stands here
        Error stories-incomplete stories.yaml:5: this story has no description
        Error stories-id-odd stories.yaml:13: the id "a/b" has '/'; letters, digits and dashes are allowed
        Error stories-incomplete stories.yaml:16: this story has no id, no title, no description
        Error stories-id-twice stories.yaml:10: the id "3-2" stands on line 7 already
        Error stories-id-prefix stories.yaml:7: the ids "3" and "3-2" cannot be told apart by their files
        Error stories-id-prefix stories.yaml:10: the ids "3" and "3-2" cannot be told apart by their files
        "#);
        assert_eq!(
            drawn("stories:\n  - id: 1\n"),
            "Error stories-no-list stories.yaml:1: this is no list of stories"
        );
        assert_eq!(drawn(""), "");
    }

    #[test]
    fn a_spec_file_says_how_far_it_is_and_why_it_stopped() {
        let text = "---\ntitle: 'T'\ntype: 'bugfix' # x\nstatus: 'blocked'\nreview_loop_iteration: 2\nfollowup_review_recommended: true\n\
                    context: ['{project-root}/docs/a.md']\nwarnings: [oversized]\n\
                        deferred:\n  - summary: >-\n      old one\n    evidence: |-\n      seen\n\
                    \x20   location: src/a.rs:4\n    severity: medium (unverified)\n---\n\n## Intent\n\n\
                        ## Auto Run Result\n\nStatus: blocked\n\
                    Blocking condition: `intent gap`\n\nStatus: no\n";
        insta::assert_debug_snapshot!(spec("s.md", text), @r#"
        Spec {
            title: Some(
                "T",
            ),
            kind: Some(
                "bugfix",
            ),
            created: None,
            status: Some(
                Blocked,
            ),
            route: None,
            review_loop_iteration: Some(
                2,
            ),
            followup_review_recommended: Some(
                true,
            ),
            context: [
                "{project-root}/docs/a.md",
            ],
            warnings: [
                "oversized",
            ],
            deferred: [
                Deferred {
                    summary: "old one",
                    evidence: "seen",
                    place: Some(
                        "src/a.rs:4",
                    ),
                    severity: Some(
                        "medium (unverified)",
                    ),
                    line: 10,
                },
            ],
            result: Some(
                RunResult {
                    status: Some(
                        Said {
                            text: "blocked",
                            line: 22,
                        },
                    ),
                    blocking_condition: Some(
                        Said {
                            text: "intent gap",
                            line: 23,
                        },
                    ),
                    line: 20,
                },
            ),
            problems: [],
        }
        "#);
        let result = spec(
            "r.md",
            "---\nstatus: done\n---\n# BMad Build Auto Result\n\nStatus: done\nBlocking condition:\n",
        )
        .result;
        assert_eq!(
            result.map(|result| (result.status.map(|said| said.text), result.blocking_condition)),
            Some((Some("done".into()), None))
        );
        assert_eq!(spec("s.md", "---\nstatus: review\n---\n").problems[0].rule, "spec-status-unknown");
        assert_eq!(spec("s.md", "---\nstatus: [\n---\n").problems[0].rule, "front-matter-broken");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_falling_over(text in "(?s)(---\n)?.{0,120}") {
            let _ = read("x", &text);
            let _ = spec("x", &text);
        }
    }
}

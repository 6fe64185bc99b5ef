//! Specs of late eras: `stories.yaml` beside a `SPEC.md`, which lists the stories of a spec, and the spec files that
//! `bmad-build` and `bmad-build-auto` work from and write their result into.
//!
//! The status of a story is in its own spec file, never in `stories.yaml`.

use tribunal_json::{Serialize, schemars};

use crate::{
    markdown::{MarkdownPage, normalize_title},
    problem::FileProblem,
    states::StoryStatus,
    story::{LocatedText, scalar_texts},
    yaml::{self, YamlContent, YamlNode},
};

/// The states of a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
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
    pub fn parse(status_text: &str) -> Option<SpecStatus> {
        let status_text =
            status_text.trim().trim_matches(['*', '`', '_', '"', '\'']).to_lowercase().replace([' ', '_'], "-");
        Some(match status_text.as_str() {
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
pub struct SpecStories {
    pub stories: Vec<SpecStory>,
    pub problems: Vec<FileProblem>,
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
pub fn read_stories(stories_path: &str, yaml_text: &str) -> SpecStories {
    let mut spec_stories = SpecStories::default();
    let root_node = match yaml::parse_yaml(yaml_text) {
        Ok(root_node) => root_node,
        Err(parse_error) => {
            let problem =
                FileProblem::error("stories-broken", stories_path, parse_error.message).with_advice("fix the YAML");
            let problem = parse_error.line.into_iter().fold(problem, FileProblem::at_line);
            spec_stories.problems.push(parse_error.column.into_iter().fold(problem, FileProblem::at_column));
            return spec_stories;
        }
    };
    if !matches!(root_node.content, YamlContent::Sequence(_) | YamlContent::Null) {
        let problem =
            FileProblem::error("stories-no-list", stories_path, "expected a list of stories").at_line(root_node.line);
        spec_stories.problems.push(problem.with_advice("write one entry per story: `- id: \"1\"`, title, description"));
    }
    for story_node in root_node.items() {
        if let Some(story) = read_spec_story(stories_path, yaml_text, story_node, &mut spec_stories.problems) {
            spec_stories.stories.push(story);
        }
    }
    // Clashes are only visible once all ids are known.
    report_id_clashes(stories_path, &spec_stories.stories, &mut spec_stories.problems);
    spec_stories
}

/// Reads one story; a story without an id cannot be used and is left out.
fn read_spec_story(
    stories_path: &str,
    yaml_text: &str,
    story_node: &YamlNode,
    problems: &mut Vec<FileProblem>,
) -> Option<SpecStory> {
    let text_of = |key: &str| {
        story_node.get(key).and_then(YamlNode::scalar_text).map(|text| text.trim().to_string()).unwrap_or_default()
    };
    // All missing keys are named in one problem, so that the user writes them in one go.
    let missing_keys: Vec<&str> =
        ["id", "title", "description"].into_iter().filter(|key| text_of(key).is_empty()).collect();
    if !missing_keys.is_empty() {
        let message = format!("story without {}", missing_keys.join(", "));
        problems.push(
            FileProblem::error("stories-incomplete", stories_path, message)
                .at_line(story_node.line)
                .with_advice("add what is missing"),
        );
    }
    problems.extend(story_node.get("id").and_then(|id_node| find_unquoted_number(stories_path, yaml_text, id_node)));
    let story_id = text_of("id");
    // The id becomes part of a file name, where a slash or a space would break the lookup.
    if let Some(odd_character) =
        story_id.chars().find(|character| !(character.is_ascii_alphanumeric() || *character == '-'))
    {
        let message = format!("invalid character {odd_character:?} in id {story_id:?}; use letters, digits and dashes");
        problems.push(
            FileProblem::error("stories-id-odd", stories_path, message)
                .at_line(story_node.line)
                .with_reason("File names start with the id."),
        );
    }
    // A status in two places would drift apart, and `bmad-build-auto` only reads the spec file.
    if let Some(status_entry) = story_node.entries().iter().find(|status_entry| status_entry.key == "status") {
        let problem =
            FileProblem::warning("stories-status", stories_path, "unexpected `status`").at_line(status_entry.line);
        problems.push(problem.with_reason("The status of a story belongs in its own file.").with_advice("remove it"));
    }
    // An incomplete story is kept as long as it has an id: its file may have the rest.
    (!story_id.is_empty()).then(|| SpecStory {
        title: text_of("title"),
        description: text_of("description"),
        spec_checkpoint: text_of("spec_checkpoint").eq_ignore_ascii_case("true"),
        done_checkpoint: text_of("done_checkpoint").eq_ignore_ascii_case("true"),
        invoke_dev_with: text_of("invoke_dev_with"),
        line: story_node.line,
        id: story_id,
    })
}

/// The problem of an id that is written as a number without quotes.
fn find_unquoted_number(stories_path: &str, yaml_text: &str, id_node: &YamlNode) -> Option<FileProblem> {
    // The source text shows whether the id was quoted; the parsed value does not.
    let source_text = id_node.span.clone().and_then(|span| yaml_text.get(span)).unwrap_or_default();
    let is_number = id_node.scalar_text().is_some_and(|story_id| story_id.parse::<f64>().is_ok());
    if source_text.starts_with(['"', '\'']) || !is_number {
        return None;
    }
    let problem = FileProblem::warning("stories-id-number", stories_path, format!("id {source_text} is not quoted"));
    let reason = "YAML reads it as a number, which then matches no story file.";
    Some(problem.at_line(id_node.line).with_reason(reason).with_advice(format!("write \"{source_text}\"")))
}

/// Reports an id that occurs twice, and an id whose files also match the pattern of another id.
fn report_id_clashes(stories_path: &str, stories: &[SpecStory], problems: &mut Vec<FileProblem>) {
    let mut first_lines = std::collections::BTreeMap::new();
    for story in stories {
        if let Some(first_line) = first_lines.insert(story.id.as_str(), story.line) {
            let message = format!("duplicate id {:?} (already on line {first_line})", story.id);
            problems.push(
                FileProblem::error("stories-id-twice", stories_path, message)
                    .at_line(story.line)
                    .with_advice("use another id"),
            );
        }
    }
    for story in stories {
        // The files of story `3-2` begin with `3-`, which is also the pattern of story `3`.
        let id_prefixes = story.id.match_indices('-').map(|(dash_offset, _)| &story.id[..dash_offset]);
        if let Some(shorter_id) = id_prefixes.into_iter().find(|prefix| first_lines.contains_key(prefix)) {
            let message = format!("the files of ids {shorter_id:?} and {:?} cannot be told apart", story.id);
            problems.push(
                FileProblem::error("stories-id-prefix", stories_path, message)
                    .at_line(story.line)
                    .with_advice("use another id"),
            );
        }
    }
}

/// The fields of a spec file beyond those of every story ([`crate::story::read_story`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SpecFile {
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
    pub deferred: Vec<SpecDeferral>,
    pub result: Option<SpecRunResult>,
    pub problems: Vec<FileProblem>,
}

/// Something that the review of a spec left for later, from its front matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpecDeferral {
    pub summary: String,
    pub evidence: String,
    pub place: Option<String>,
    pub severity: Option<String>,
    pub line: usize,
}

/// The section `Auto Run Result`, or the content of a separate result file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SpecRunResult {
    pub status: Option<LocatedText>,
    /// One of BMAD's own sentences, such as `intent gap`.
    pub blocking_condition: Option<LocatedText>,
    pub line: usize,
}

/// Reads a spec file.
pub fn read_spec(spec_path: &str, spec_text: &str) -> SpecFile {
    let markdown = MarkdownPage::parse(spec_text);
    let mut spec = SpecFile { result: read_run_result(&markdown), ..SpecFile::default() };
    let front_matter = match markdown.front_matter().map(yaml::parse_yaml) {
        Some(Ok(front_matter)) => front_matter,
        // The front matter begins behind the first mark, so its lines are one further down in the file.
        Some(Err(parse_error)) => {
            let message = format!("{} (in the front matter)", parse_error.message);
            let line_number = parse_error.line.map_or(1, |line_number| line_number + 1);
            spec.problems.push(
                FileProblem::error("front-matter-broken", spec_path, message)
                    .at_line(line_number)
                    .with_advice("fix the YAML"),
            );
            return spec;
        }
        None => return spec,
    };
    let texts_of = |key: &str| front_matter.get(key).map(scalar_texts).unwrap_or_default();
    // A single value may also be written as a list of one.
    let text_of = |key: &str| texts_of(key).into_iter().next();
    spec.title = text_of("title");
    spec.kind = text_of("type");
    spec.created = text_of("created");
    spec.route = text_of("route");
    spec.review_loop_iteration = text_of("review_loop_iteration").and_then(|count| count.parse().ok());
    spec.followup_review_recommended =
        text_of("followup_review_recommended").and_then(|field_text| field_text.parse().ok());
    spec.context = texts_of("context");
    spec.warnings = texts_of("warnings");
    spec.deferred =
        front_matter.get("deferred").map(|list| list.items().iter().map(read_deferral).collect()).unwrap_or_default();
    if let Some(status_text) = text_of("status") {
        spec.status = SpecStatus::parse(&status_text);
        if spec.status.is_none() {
            let line_number = front_matter.get("status").map_or(1, |node| node.line + 1);
            let message = format!("unknown spec status {status_text:?}");
            let problem = FileProblem::error("spec-status-unknown", spec_path, message).at_line(line_number);
            let todo = "use one of draft, ready-for-dev, in-progress, in-review, done, blocked";
            spec.problems.push(problem.with_reason("`bmad-build-auto` stops at an unknown status.").with_advice(todo));
        }
    }
    spec
}

/// Reads a deferral; a plain sentence instead of a mapping is its summary.
fn read_deferral(deferral_node: &YamlNode) -> SpecDeferral {
    let text_of =
        |key: &str| deferral_node.get(key).and_then(YamlNode::scalar_text).map(|text| text.trim().to_string());
    let summary = text_of("summary").or_else(|| deferral_node.scalar_text().map(|text| text.trim().to_string()));
    SpecDeferral {
        summary: summary.unwrap_or_default(),
        evidence: text_of("evidence").unwrap_or_default(),
        place: text_of("location").filter(|place| !place.is_empty()),
        severity: text_of("severity").filter(|severity| !severity.is_empty()),
        line: deferral_node.line + 1,
    }
}

/// Reads the section `Auto Run Result`; a file that holds only a result has it under its title.
fn read_run_result(markdown: &MarkdownPage<'_>) -> Option<SpecRunResult> {
    let section = markdown
        .find_section(|title| title == "auto run result")
        .or_else(|| markdown.find_section(|title| title.ends_with("auto result")))?;
    let mut run_result =
        SpecRunResult { line: markdown.lines[section.heading_index].number, ..SpecRunResult::default() };
    for line in markdown.lines[section.line_range].iter().filter(|line| line.is_prose()) {
        let item_text = line.text.trim().trim_start_matches(['-', '*', '+', ' ']);
        let Some((field_label, field_value)) = item_text.split_once(':') else { continue };
        // The value may be emphasized: `Blocking condition: **intent gap**`.
        let field_value = field_value.trim().trim_matches(['*', '`', ' ']);
        let located_value =
            || (!field_value.is_empty()).then(|| LocatedText { text: field_value.to_string(), line: line.number });
        match normalize_title(field_label).as_str() {
            "status" if run_result.status.is_none() => run_result.status = located_value(),
            "blocking condition" if run_result.blocking_condition.is_none() => {
                run_result.blocking_condition = located_value()
            }
            _ => {}
        }
    }
    Some(run_result)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn render_stories(yaml_text: &str) -> String {
        let SpecStories { stories, problems } = read_stories("stories.yaml", yaml_text);
        let render_story = |story: SpecStory| {
            let SpecStory { id, title, spec_checkpoint, done_checkpoint, invoke_dev_with, line, .. } = story;
            format!("{line} {id} {title:?} {spec_checkpoint} {done_checkpoint} {invoke_dev_with:?}")
        };
        let problems = problems.iter().map(|problem| format!("{:?} {} {problem}", problem.weight, problem.rule));
        stories.into_iter().map(render_story).chain(problems).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn stories_are_read_in_their_order_and_mistakes_are_reported() {
        let valid_stories = "- id: \"1\"\n  title: Limit\n  description: >-\n    Put a limit\n    in front.\n\
                    \x20 spec_checkpoint: true\n  invoke_dev_with: use it\n\
                    - id: \"2\"\n  title: Show\n  description: x\n";
        insta::assert_snapshot!(render_stories(valid_stories), @r#"
        1 1 "Limit" true false "use it"
        8 2 "Show" false false ""
        "#);
        let broken_stories = "- id: 1\n  title: a\n  description: b\n  status: done\n- id: \"3\"\n  title: a\n\
            - id: \"3-2\"\n  title: a\n  description: b\n\
                   - id: \"3-2\"\n  title: a\n  description: b\n- id: \"a/b\"\n  title: a\n  description: b\n- text\n";
        insta::assert_snapshot!(render_stories(broken_stories), @r#"
        1 1 "a" false false ""
        5 3 "a" false false ""
        7 3-2 "a" false false ""
        10 3-2 "a" false false ""
        13 a/b "a" false false ""
        Warning stories-id-number stories.yaml:1: id 1 is not quoted
        Warning stories-status stories.yaml:4: unexpected `status`
        Error stories-incomplete stories.yaml:5: story without description
        Error stories-id-odd stories.yaml:13: invalid character '/' in id "a/b"; use letters, digits and dashes
        Error stories-incomplete stories.yaml:16: story without id, title, description
        Error stories-id-twice stories.yaml:10: duplicate id "3-2" (already on line 7)
        Error stories-id-prefix stories.yaml:7: the files of ids "3" and "3-2" cannot be told apart
        Error stories-id-prefix stories.yaml:10: the files of ids "3" and "3-2" cannot be told apart
        "#);
        assert_eq!(
            render_stories("stories:\n  - id: 1\n"),
            "Error stories-no-list stories.yaml:1: expected a list of stories"
        );
        assert_eq!(render_stories(""), "");
    }

    #[test]
    fn a_spec_file_says_how_far_it_is_and_why_it_stopped() {
        let spec_text = "---\ntitle: 'T'\ntype: 'bugfix' # x\nstatus: 'blocked'\nreview_loop_iteration: 2\n\
                    followup_review_recommended: true\n\
                    context: ['{project-root}/docs/a.md']\nwarnings: [oversized]\n\
                        deferred:\n  - summary: >-\n      old one\n    evidence: |-\n      seen\n\
                    \x20   location: src/a.rs:4\n    severity: medium (unverified)\n---\n\n## Intent\n\n\
                        ## Auto Run Result\n\nStatus: blocked\n\
                    Blocking condition: `intent gap`\n\nStatus: no\n";
        insta::assert_debug_snapshot!(read_spec("s.md", spec_text), @r#"
        SpecFile {
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
                SpecDeferral {
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
                SpecRunResult {
                    status: Some(
                        LocatedText {
                            text: "blocked",
                            line: 22,
                        },
                    ),
                    blocking_condition: Some(
                        LocatedText {
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
        let result = read_spec(
            "r.md",
            "---\nstatus: done\n---\n# BMad Build Auto Result\n\nStatus: done\nBlocking condition:\n",
        )
        .result;
        assert_eq!(
            result.map(|result| (result.status.map(|said| said.text), result.blocking_condition)),
            Some((Some("done".into()), None))
        );
        assert_eq!(read_spec("s.md", "---\nstatus: review\n---\n").problems[0].rule, "spec-status-unknown");
        assert_eq!(read_spec("s.md", "---\nstatus: [\n---\n").problems[0].rule, "front-matter-broken");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_falling_over(text in "(?s)(---\n)?.{0,120}") {
            let _ = read_stories("x", &text);
            let _ = read_spec("x", &text);
        }
    }
}

//! What a story's file says about other work: the stories that it depends on, the deferred work that it closes or leaves, and
//! what only the operator can do for it. All of it stands in the front matter; operator actions may also be boxes under a
//! heading `Operator Actions`.

use std::collections::{BTreeMap, BTreeSet};

use tribunal_json::{Serialize, schemars};

use super::{scalar_texts, tasks};
use crate::{
    markdown::{MarkdownPage, escape_comments, normalize_title},
    yaml::{YamlContent, YamlNode},
};

/// The references and leftovers of a story.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct StoryLinks {
    pub depends_on: Vec<String>,
    /// Whether `depends_on` is an empty list: then the story depends on nothing. Without the field it says nothing about it.
    #[serde(skip)]
    pub depends_on_nothing: bool,
    pub closes_deferred: Vec<String>,
    /// What only the operator can do, such as buying a domain, and what is not ticked or confirmed yet.
    pub operator_actions: Vec<String>,
    /// What the work on the story left for later, from `deferred:` in the front matter.
    pub deferred: Vec<String>,
    /// The severities that items of `deferred` name, by the texts of the items.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub deferred_severities: BTreeMap<String, String>,
}

/// The keys that name what an item of `deferred` is about, the best one first.
const DEFERRED_TEXT_KEYS: [&str; 5] = ["summary", "title", "text", "description", "what"];

/// The heading above boxes with operator actions.
const ACTIONS_TITLE: &str = "operator actions";

/// The heading above the actions that the operator has confirmed.
const CONFIRMATION_TITLE: &str = "operator confirmation";

pub(super) fn read_links(markdown: &MarkdownPage<'_>, front_matter: Option<&YamlNode>) -> StoryLinks {
    let find_field = |field_name: &str| front_matter.and_then(|front_matter| front_matter.get(field_name));
    StoryLinks {
        depends_on: find_field("depends_on").map(scalar_texts).unwrap_or_default(),
        depends_on_nothing: find_field("depends_on").is_some_and(is_empty_list),
        closes_deferred: find_field("closes_deferred").map(scalar_texts).unwrap_or_default(),
        operator_actions: read_operator_actions(markdown, find_field("operator_actions")),
        deferred: find_field("deferred").map(|node| read_texts(node, &DEFERRED_TEXT_KEYS)).unwrap_or_default(),
        deferred_severities: find_field("deferred").map(read_severities).unwrap_or_default(),
    }
}

/// Whether a value is `[]`. A key without a value is what a template leaves, and says nothing.
fn is_empty_list(node: &YamlNode) -> bool {
    matches!(&node.content, YamlContent::Sequence(list_items) if list_items.is_empty())
}

/// The severities of the items of a list, by their texts. Of several items with one text the first counts.
fn read_severities(node: &YamlNode) -> BTreeMap<String, String> {
    let mut severities = BTreeMap::new();
    for list_item in list_items(node) {
        let severity = list_item.get("severity").map(join_scalars).filter(|severity| is_named(severity));
        if let Some(severity) = severity {
            severities.entry(read_item_text(list_item, &DEFERRED_TEXT_KEYS)).or_insert(severity);
        }
    }
    severities
}

/// The actions of the front matter and of the boxes. An action that is ticked in either section is not owed any more.
fn read_operator_actions(markdown: &MarkdownPage<'_>, actions_node: Option<&YamlNode>) -> Vec<String> {
    let mut owed_actions = actions_node
        .map(|node| read_texts(node, &["action", "title", "description", "what", "text"]))
        .unwrap_or_default();
    let action_boxes = find_action_boxes(markdown);
    let open_boxes = action_boxes.iter().filter(|action_box| !action_box.is_confirmation && !action_box.item.done);
    owed_actions.extend(open_boxes.map(|action_box| to_one_line(action_box.item.text)));
    let ticked_boxes = action_boxes.iter().filter(|action_box| action_box.item.done);
    let mut left_out: BTreeSet<String> = ticked_boxes.flat_map(ActionBox::action_keys).collect();
    // A key is left out from its second occurrence on.
    owed_actions.retain(|action| is_named(action) && left_out.insert(action_key(action)));
    owed_actions
}

/// A box under one of the two headings.
pub(super) struct ActionBox<'t> {
    pub item: tasks::CheckboxItem<'t>,
    /// Whether the heading is that of the confirmation.
    pub is_confirmation: bool,
}

impl ActionBox<'_> {
    /// The keys of the action that the box is for: with what follows it in `(confirmed 2026-01-02)`, and without.
    pub(super) fn action_keys(&self) -> Vec<String> {
        let box_text = self.item.text;
        let unconfirmed = box_text.strip_suffix(')').and_then(|text| text.rsplit_once(" (confirmed "));
        let bare_key = unconfirmed.map(|(bare_text, _)| action_key(bare_text));
        bare_key.into_iter().chain([action_key(box_text)]).collect()
    }
}

/// Every box below a heading for operator actions or for their confirmation.
pub(super) fn find_action_boxes<'t>(markdown: &MarkdownPage<'t>) -> Vec<ActionBox<'t>> {
    let mut action_boxes = Vec::new();
    for section in markdown.sections() {
        let is_confirmation = is_confirmation_title(section.title);
        if !is_confirmation && normalize_title(section.title) != ACTIONS_TITLE {
            continue;
        }
        let section_boxes = markdown.lines[section.line_range].iter().filter_map(tasks::parse_checkbox);
        action_boxes.extend(section_boxes.map(|item| ActionBox { item, is_confirmation }));
    }
    action_boxes
}

pub(super) fn is_confirmation_title(title: &str) -> bool {
    normalize_title(title) == CONFIRMATION_TITLE
}

/// What makes two actions the same: the words, without regard to case, spacing and a full stop.
pub(super) fn action_key(action_text: &str) -> String {
    let one_line = escape_comments(&to_one_line(action_text));
    one_line.trim_end_matches('.').to_lowercase()
}

/// Whether a text names something. Templates write `None` into empty lists.
fn is_named(item_text: &str) -> bool {
    !matches!(action_key(item_text).as_str(), "" | "none" | "n/a")
}

/// The texts of a list, or of a single value. Of a mapping, the first of these keys that it has is taken.
fn read_texts(node: &YamlNode, text_keys: &[&str]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for list_item in list_items(node) {
        let item_text = read_item_text(list_item, text_keys);
        if is_named(&item_text) && !texts.contains(&item_text) {
            texts.push(item_text);
        }
    }
    texts
}

/// The items of a list, or a single value as the only one.
fn list_items(node: &YamlNode) -> &[YamlNode] {
    match &node.content {
        YamlContent::Sequence(list_items) => list_items.as_slice(),
        _ => std::slice::from_ref(node),
    }
}

fn read_item_text(list_item: &YamlNode, text_keys: &[&str]) -> String {
    let mut named_texts = text_keys.iter().filter_map(|text_key| list_item.get(text_key)).map(join_scalars);
    // An item in another form is kept with everything that it says.
    named_texts.find(|named_text| !named_text.is_empty()).unwrap_or_else(|| join_scalars(list_item))
}

/// All scalars of a value on one line, with the keys of mappings: `- Cache: never cleared` is a mapping, and meant as a text.
pub(super) fn join_scalars(node: &YamlNode) -> String {
    match &node.content {
        YamlContent::Null => String::new(),
        YamlContent::Scalar(scalar) => to_one_line(scalar),
        YamlContent::Sequence(items) => {
            let item_texts: Vec<String> =
                items.iter().map(join_scalars).filter(|item_text| !item_text.is_empty()).collect();
            item_texts.join(", ")
        }
        YamlContent::Mapping(entries) => {
            let entry_texts = entries.iter().map(|entry| match join_scalars(&entry.value) {
                value_text if value_text.is_empty() => to_one_line(&entry.key),
                value_text => format!("{}: {value_text}", to_one_line(&entry.key)),
            });
            entry_texts.collect::<Vec<_>>().join(", ")
        }
    }
}

pub(super) fn to_one_line(item_text: &str) -> String {
    item_text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use crate::story::read_story;

    fn render_lists(story_text: &str) -> String {
        let links = read_story("1-2-x.md", story_text).links;
        format!("{:?} {:?}", links.operator_actions, links.deferred)
    }

    #[test]
    fn lists_of_the_front_matter_are_read_in_every_form() {
        let rendered = [
            "operator_actions: Buy the domain",
            "operator_actions:\n  - Buy the domain\n  - {title: b, action: Grant a key}\n  - what: Call\n    by: May\n",
            "operator_actions: [None, n/a, a, A., b]",
            "operator_actions:\ndeferred: none",
            "deferred: The cache is slow",
            "deferred:\n  - title: t\n    summary: |\n      Two\n      lines\n  - [a, [b, ~, c]]\n  - Cache: never cleared\n  - x\n  - x\n",
            "deferred: {severity: low, place: [a.rs, b.rs]}",
        ]
        .map(|front_matter| render_lists(&format!("---\n{front_matter}\n---\n# A\n")));
        insta::assert_snapshot!(rendered.join("\n"), @r#"
        ["Buy the domain"] []
        ["Buy the domain", "Grant a key", "Call"] []
        ["a", "b"] []
        [] []
        [] ["The cache is slow"]
        [] ["Two lines", "a, b, c", "Cache: never cleared", "x"]
        [] ["severity: low, place: a.rs, b.rs"]
        "#);
    }

    #[test]
    fn an_empty_list_says_that_a_story_depends_on_nothing() {
        for (front_matter, expected) in [
            ("depends_on: []", true),
            ("depends_on:", false),
            ("depends_on: [1.1]", false),
            ("depends_on:\n  -", false),
            ("closes_deferred: []", false),
        ] {
            let links = read_story("1-2-x.md", &format!("---\n{front_matter}\n---\n# A\n")).links;
            assert_eq!(links.depends_on_nothing, expected, "{front_matter}");
        }
    }

    #[test]
    fn the_severity_of_what_is_left_is_kept() {
        let front_matter = "deferred:\n  - summary: The cache is slow\n    severity: medium (unverified)\n  - a\n\
                            \x20 - {title: No log, severity: none}\n  - {what: No retry, severity: High}\n";
        let links = read_story("1-2-x.md", &format!("---\n{front_matter}---\n# A\n")).links;
        assert_eq!(links.deferred, ["The cache is slow", "a", "No log", "No retry"]);
        insta::assert_debug_snapshot!(links.deferred_severities, @r#"
        {
            "No retry": "High",
            "The cache is slow": "medium (unverified)",
        }
        "#);
    }

    #[test]
    fn boxes_that_are_not_ticked_are_owed() {
        let story_text = "---\noperator_actions: [Buy the domain, Grant a key, Call]\n---\n# A\n\n## 3. Operator Actions:\n\n\
                          - [ ] Buy  the domain\n- [x] grant a key.\n- [ ] None\n- [ ] Sign\n- no box\n\n## Operator Confirmation\n\n\
                          - [x] Call (confirmed 2026-01-02)\n- [ ] Wait\n\n## Other\n\n- [ ] task\n";
        assert_eq!(render_lists(story_text), r#"["Buy the domain", "Sign"] []"#);
        let story = read_story("1-2-x.md", story_text);
        assert_eq!(story.task_progress(), (0, 1), "an action is no task");
    }
}

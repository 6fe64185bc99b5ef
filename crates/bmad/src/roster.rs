//! The project's own agents, as personas for a party and as agents that can be called by name.
//!
//! The roster is in `_bmad/_config/agent-manifest.csv`, whose columns are found by their names, since every era has others;
//! late eras have it in the TOML files of the settings instead. Whether a roster is big enough for a party is not decided
//! here.

mod names;

use std::collections::BTreeSet;

pub use names::Unnamed;
use serde::Serialize;

use tribunal_core::{
    plan::Persona,
    text::{cut, fold_line},
};

use crate::{
    config, csv,
    problem::Problem,
    shelf::{self, Shelf},
    toml_tree,
    yaml::{Form, Node},
};

/// The path of the manifest in a project.
pub const ROSTER_PATH: &str = "_bmad/_config/agent-manifest.csv";

/// More personas than this are no help to choose from.
const MOST: usize = 40;
/// No project has more agents than this.
const MOST_AGENTS: usize = 500;
const NAME_LENGTH: usize = 60;
const FOCUS_LENGTH: usize = 120;
/// The length of the longest entity, `&#x10ffff;`.
const LONGEST_ENTITY: usize = 10;

/// An agent of the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Member {
    /// BMAD's id: `dev`, in late eras `bmad-agent-dev`.
    pub id: String,
    /// The name of the persona: Amelia.
    pub name: String,
    pub title: String,
    pub module: String,
    /// The skill that is this agent, where the manifest names it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub skill: String,
}

/// The agents that could be read from a manifest, and remarks about what could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    pub members: Vec<Member>,
    /// The members that can review a text.
    pub personas: Vec<Persona>,
    /// Remarks about the file, each a sentence without its subject.
    pub remarks: Vec<String>,
}

/// The roster of an installed BMAD, wherever its era keeps it, and its file; `None` if there is no roster.
pub fn of(shelf: &dyn Shelf, problems: &mut Vec<Problem>) -> Option<(Roster, String)> {
    let root = config::root(shelf)?;
    for folder in ["_config", "_cfg"] {
        let path = format!("{root}/{folder}/agent-manifest.csv");
        if let Some(text) = shelf::read(shelf, &path, problems) {
            return Some((roster(&text), path));
        }
    }
    // The CSV manifest wins where a project has both forms.
    let paths = config::toml_paths(root);
    let texts = paths.iter().filter_map(|path| shelf::read(shelf, path, problems));
    let roster = of_layers(&texts.collect::<Vec<_>>())?;
    Some((roster, paths.into_iter().next().unwrap_or_default()))
}

/// The agents of late eras: `[agents.ID]` in four TOML files, the weakest first; a key of a later file wins. `None` if no
/// file has any agent.
pub fn of_layers(texts: &[String]) -> Option<Roster> {
    let mut agents: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for text in texts {
        let (tree, _) = toml_tree::parse(text);
        for agent in tree.get("agents").map(Node::entries).unwrap_or_default() {
            // A scalar under `agents` belongs to the settings, not to an agent.
            let Form::Map(keys) = &agent.value.form else { continue };
            // The files are merged by the agent's id, and the first file decides the order.
            let at = match agents.iter().position(|(id, _)| *id == agent.key) {
                Some(at) => at,
                None if agents.len() >= MOST_AGENTS => continue,
                None => {
                    agents.push((agent.key.clone(), Vec::new()));
                    agents.len() - 1
                }
            };
            for key in keys {
                let Some(value) = key.value.text() else { continue };
                let known = &mut agents[at].1;
                known.retain(|(name, _)| *name != key.key);
                known.push((key.key.clone(), value.to_string()));
            }
        }
    }
    let mut roster = Roster::default();
    let mut known = BTreeSet::new();
    for (id, keys) in &agents {
        // The columns of a manifest, by the names that these files have for them, so that both forms share one reader.
        let head: Vec<String> = keys
            .iter()
            .map(|(key, _)| match key.as_str() {
                "name" => "displayname".into(),
                "description" => "role".into(),
                other => other.to_lowercase(),
            })
            .chain(["name".to_string()])
            .collect();
        let fields: Vec<String> = keys.iter().map(|(_, value)| value.clone()).chain([id.clone()]).collect();
        roster.take(&Row { head: &head, fields: &fields }, &mut known);
    }
    (!agents.is_empty()).then_some(roster)
}

/// Parses the roster of a CSV manifest.
pub fn roster(text: &str) -> Roster {
    let table = csv::parse(text);
    let mut roster = Roster::default();
    if let Some(line) = table.unclosed {
        roster.remarks.push(format!("has a quote in line {line} that is never closed"));
    }
    let Some((head, rows)) = table.rows.split_first() else {
        if table.unclosed.is_none() {
            roster.remarks.push("is empty".into());
        }
        return roster;
    };
    let head: Vec<String> = head.iter().map(|name| name.trim().to_lowercase()).collect();
    // Without one of these columns no row could be named.
    if !NAMES.iter().any(|name| head.iter().any(|column| column == name)) {
        roster.remarks.push("has no column `title`, `displayName` or `name`".into());
        return roster;
    }
    let mut known = BTreeSet::new();
    for row in rows {
        roster.take(&Row { head: &head, fields: row }, &mut known);
    }
    let left = known.len() - roster.personas.len();
    if left > 0 {
        roster.remarks.push(format!("names more than {MOST} personas; {left} are left out"));
    }
    roster
}

impl Roster {
    /// Adds a row as a member and, if it can review a text, as a persona.
    fn take(&mut self, row: &Row<'_>, known: &mut BTreeSet<String>) {
        if let Some(member) = row.member().filter(|_| self.members.len() < MOST_AGENTS) {
            self.members.push(member);
        }
        let Some(persona) = row.persona().filter(|_| !row.is_meta()) else { return };
        // Every persona is counted by its name, even above the limit, so that the remark can say how many were left out.
        if known.insert(persona.name.to_lowercase()) && known.len() <= MOST {
            self.personas.push(persona);
        }
    }
}

/// The columns for a persona's name and focus: the first one that is not empty counts.
const NAMES: [&str; 3] = ["title", "displayname", "name"];
const FOCUSES: [&str; 3] = ["role", "capabilities", "identity"];

/// A row with the header that names its columns.
struct Row<'a> {
    head: &'a [String],
    fields: &'a [String],
}

impl Row<'_> {
    fn get(&self, column: &str) -> String {
        let index = self.head.iter().position(|name| name == column);
        index.and_then(|index| self.fields.get(index)).map(|field| plain(field)).unwrap_or_default()
    }

    fn first(&self, columns: [&str; 3]) -> String {
        columns.iter().map(|column| self.get(column)).find(|text| !text.is_empty()).unwrap_or_default()
    }

    fn member(&self) -> Option<Member> {
        let id = self.get("name");
        // Some manifests have no ids; the name then identifies the agent.
        let id = if id.is_empty() { self.get("displayname") } else { id };
        (!id.is_empty()).then(|| Member {
            id: cut(&id, NAME_LENGTH),
            name: cut(&self.get("displayname"), NAME_LENGTH),
            title: cut(&self.get("title"), NAME_LENGTH),
            module: cut(&self.get("module"), NAME_LENGTH),
            skill: cut(&self.get("canonicalid"), NAME_LENGTH),
        })
    }

    fn persona(&self) -> Option<Persona> {
        let name = self.first(NAMES);
        let focus = self.first(FOCUSES);
        (!name.is_empty()).then(|| Persona::new(cut(&name, NAME_LENGTH), cut(&focus, FOCUS_LENGTH)))
    }

    /// Whether the agent orchestrates others or builds BMAD itself; such an agent has nothing to say about a text.
    fn is_meta(&self) -> bool {
        let leads = |text: &str| text.to_lowercase().contains("orchestrator");
        let name = self.get("name").to_lowercase();
        name == "bmad-master" || self.get("module") == "bmb" || leads(&name) || leads(&self.get("title"))
    }
}

/// A field as one line without entities, doubled quotes and control characters.
fn plain(field: &str) -> String {
    let mut text = fold_line(&decoded(field));
    // Some versions escape quotes twice, so one pass is not enough.
    while text.contains("\"\"") {
        text = text.replace("\"\"", "\"");
    }
    text
}

/// Decodes the HTML entities that BMAD's installer writes, and numeric ones. Only once: `&amp;quot;` is the text `&quot;`.
fn decoded(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        // No entity is longer; a text of ampersands must not be searched to its end for each of them.
        let end = rest.bytes().take(LONGEST_ENTITY).position(|byte| byte == b';');
        let entity = end.and_then(|end| Some((character(&rest[1..end])?, end)));
        match entity {
            Some((c, end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

fn character(entity: &str) -> Option<char> {
    match entity {
        "quot" => Some('"'),
        "apos" => Some('\''),
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "nbsp" => Some(' '),
        _ => {
            let number = entity.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            code.ok().and_then(char::from_u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str) -> String {
        let roster = roster(text);
        let remarks = roster.remarks.iter().map(|remark| format!("[it {remark}]"));
        let personas = roster.personas.iter().map(ToString::to_string);
        personas.chain(remarks).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_manifest_of_the_first_era_is_read() {
        let text = "name,displayName,title,icon,role,identity,communicationStyle,principles,module,path\n\
            \"bmad-master\",\"BMad Master\",\"BMad Master Executor\",\"x\",\"Runs it all\",\"i\",\"c\",\"p\",\"core\",\"a.md\"\n\
            \"clerk\",\"Ada\",\"Billing Clerk\",\"x\",\"Invoices &amp; refunds\",\"i\",\"says &quot;no&quot;\",\"p\",\"bmm\",\
                \"b.md\"\n\
            \"cook\",\"Ben\",\"Ship&apos;s Cook\",\"x\",\"\",\"Feeds\nforty\",\"c\",\"p\",\"bmm\",\"c.md\"\n";
        assert_eq!(drawn(text), "Billing Clerk (Invoices & refunds)\nShip's Cook (Feeds forty)");
    }

    #[test]
    fn columns_are_found_by_their_names_in_any_order() {
        let text = "\u{feff}canonicalId,capabilities,Name,displayName,title\r\n\
            x,\"nets, lines\",fisher,Cid,\r\n\
            y,,pilot,,\r\n\
            z,\"asks \"\"\"\"why?\"\"\"\" often\",sailor,Dan,Able Sailor\r\n\
            short\r\n";
        assert_eq!(drawn(text), "Cid (nets, lines)\npilot\nAble Sailor (asks \"why?\" often)");
    }

    #[test]
    fn who_leads_the_others_or_builds_bmad_takes_no_part_and_a_scrum_master_does() {
        let text = "name,title,role,module\n\
            bmad-master,Executor,r,core\nparty-orchestrator,Host,r,x\nlead,Workflow Orchestrator,r,x\n\
            agent-builder,Agent Building Expert,r,bmb\nsm,Scrum Master,Sprint Orchestrator,bmm\n";
        assert_eq!(drawn(text), "Scrum Master (Sprint Orchestrator)");
    }

    #[test]
    fn late_eras_have_their_agents_in_toml() {
        let team = "[core]\nx = 1\n[agents.bmad-agent-pilot]\nmodule = \"bmm\"\nname = \"Ann\"\ntitle = \"Pilot\"\n\
            description = \"Knows the charts\"\n\
            [agents.bmad-agent-cook]\nname = \"Ben\"\ntitle = \"Cook\"\n";
        let own = "[agents.bmad-agent-cook]\ntitle = \"Head Cook\"\ndescription = \"Feeds\"\n[agents.mate]\nname = \"Cid\"\n\
            [agents]\nbroken = 1\n";
        let roster = of_layers(&[team.into(), own.into()]).unwrap();
        let personas: Vec<String> = roster.personas.iter().map(ToString::to_string).collect();
        assert_eq!(personas, ["Pilot (Knows the charts)", "Head Cook (Feeds)", "Cid"]);
        assert_eq!(roster.members[1].name, "Ben");
        assert_eq!(of_layers(&["[core]\n".into()]), None);
    }

    #[test]
    fn a_roster_is_found_where_its_era_keeps_it() {
        use crate::shelf::Kept;
        let toml = ("_bmad/config.toml", "[agents.a]\ntitle = \"T\"\n");
        let csv = ("_bmad/_config/agent-manifest.csv", "name,title\nb,B\n");
        let found = |files: &[(&str, &str)]| {
            let (roster, path) = of(&Kept::with(files.iter().copied()), &mut Vec::new())?;
            Some(format!("{} in {path}", roster.members.first().map_or("", |member| &member.id)))
        };
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[("_bmad/config.toml", "[core]\n")]), None);
        assert_eq!(found(&[toml]).as_deref(), Some("a in _bmad/config.toml"));
        assert_eq!(found(&[csv, toml]).as_deref(), Some("b in _bmad/_config/agent-manifest.csv"));
        let old = found(&[("bmad/_cfg/agent-manifest.csv", "name\nc\n")]);
        assert_eq!(old.as_deref(), Some("c in bmad/_cfg/agent-manifest.csv"));
    }

    #[test]
    fn one_name_is_one_persona() {
        assert_eq!(drawn("title,role\nWriter,guides\nwriter,other\nCook,\n"), "Writer (guides)\nCook");
    }

    #[test]
    fn long_texts_and_long_lists_are_cut() {
        let row = |number: usize| format!("T{number},{}\n", "word ".repeat(100));
        let text = format!("title,role\n{}", (0..43).map(row).collect::<String>());
        let roster = roster(&text);
        assert_eq!(roster.personas.len(), MOST);
        assert!(roster.personas.iter().all(|persona| persona.focus.chars().count() <= FOCUS_LENGTH + 1));
        assert_eq!(roster.remarks, ["names more than 40 personas; 3 are left out"]);
    }

    #[test]
    fn what_is_no_manifest_is_said_and_what_can_be_read_is_kept() {
        for (text, drawn_as) in [
            ("", "[it is empty]"),
            ("path,hash\na,b\n", "[it has no column `title`, `displayName` or `name`]"),
            ("title,role\n", ""),
            (
                "title,role\nCook,food\n\"Clerk,x\nPilot,y\n",
                "Cook (food)\n[it has a quote in line 3 that is never closed]",
            ),
            ("\"", "[it has a quote in line 1 that is never closed]"),
        ] {
            assert_eq!(drawn(text), drawn_as, "{text:?}");
        }
    }

    #[test]
    fn entities_are_decoded_once() {
        for (text, meant) in [
            ("&lt;b&gt; &#39;x&#x27; &amp;quot;", "<b> 'x' &quot;"),
            ("R&D; a & b &unknown; &#xffffffff; &", "R&D; a & b &unknown; &#xffffffff; &"),
            ("a&#7;b\u{1b}[2J", "ab[2J"),
        ] {
            assert_eq!(plain(text), meant);
        }
    }
}

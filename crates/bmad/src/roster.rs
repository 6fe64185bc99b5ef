//! The project's own agents, as personas for a party and as agents that can be called by name.
//!
//! The roster is in `_bmad/_config/agent-manifest.csv`, whose columns are found by their names, since every era has others;
//! late eras have it in the TOML files of the settings instead. Whether a roster is big enough for a party is not decided
//! here.

mod name_lookup;

use std::collections::BTreeSet;

use tribunal_json::Serialize;

pub use name_lookup::AgentNameError;

use tribunal_engine::text::{sanitize_to_line, truncate_chars};
use tribunal_workflows::findings::seat_plan::Persona;

use crate::{
    config, csv,
    problem::FileProblem,
    project_files::{self, ProjectFiles},
    toml_tree,
    yaml::{YamlContent, YamlNode},
};

/// The path of the manifest in a project.
pub const ROSTER_PATH: &str = "_bmad/_config/agent-manifest.csv";

/// The path of the list of agents that the project has made itself.
pub const CUSTOM_ROSTER_PATH: &str = "_bmad/_config/custom-agents.csv";
/// The module of custom agents that name none.
const CUSTOM_MODULE: &str = "custom";

/// More personas than this are no help to choose from.
const MAX_PERSONAS: usize = 40;
/// Agents beyond this number are left out.
const MAX_AGENTS: usize = 500;
const MAX_NAME_LENGTH: usize = 60;
const MAX_FOCUS_LENGTH: usize = 120;
/// The length of the longest entity, `&#x10ffff;`.
const MAX_ENTITY_LENGTH: usize = 10;

/// An agent of the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RosterMember {
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
    pub members: Vec<RosterMember>,
    /// The members that can review a text.
    pub personas: Vec<Persona>,
    /// Remarks about the file, each a sentence without its subject.
    pub remarks: Vec<String>,
}

/// The roster of an installed BMAD, wherever its era keeps it, with the project's custom agents, and its file; `None` if there
/// is no roster.
pub fn find_roster(project_files: &dyn ProjectFiles, problems: &mut Vec<FileProblem>) -> Option<(Roster, String)> {
    let bmad_root = config::find_bmad_root(project_files)?;
    let installed = find_installed_roster(bmad_root, project_files, problems);
    let custom = ["_config", "_cfg"].iter().find_map(|directory| {
        let custom_path = format!("{bmad_root}/{directory}/custom-agents.csv");
        let csv_text = project_files::read_or_report(project_files, &custom_path, problems)?;
        Some((csv_text, custom_path))
    });
    match (installed, custom) {
        (Some((mut roster, roster_path)), Some((csv_text, _))) => {
            roster.add_custom_agents(&csv_text);
            Some((roster, roster_path))
        }
        (None, Some((csv_text, custom_path))) => {
            let mut roster = Roster::default();
            roster.add_custom_agents(&csv_text);
            Some((roster, custom_path))
        }
        (installed, None) => installed,
    }
}

/// The roster that an installer wrote, and its file.
fn find_installed_roster(
    bmad_root: &str,
    project_files: &dyn ProjectFiles,
    problems: &mut Vec<FileProblem>,
) -> Option<(Roster, String)> {
    for directory in ["_config", "_cfg"] {
        let manifest_path = format!("{bmad_root}/{directory}/agent-manifest.csv");
        if let Some(csv_text) = project_files::read_or_report(project_files, &manifest_path, problems) {
            return Some((parse_roster(&csv_text), manifest_path));
        }
    }
    // The CSV manifest wins where a project has both forms.
    let paths = config::toml_paths(bmad_root);
    let toml_texts =
        paths.iter().filter_map(|toml_path| project_files::read_or_report(project_files, toml_path, problems));
    let roster = roster_from_toml(&toml_texts.collect::<Vec<_>>())?;
    Some((roster, paths.into_iter().next().unwrap_or_default()))
}

/// The agents of late eras: `[agents.ID]` in four TOML files, the weakest first; a key of a later file wins. `None` if no
/// file has any agent.
pub fn roster_from_toml(toml_texts: &[String]) -> Option<Roster> {
    let mut agents: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for toml_text in toml_texts {
        let (root_node, _) = toml_tree::parse_toml(toml_text);
        for agent_entry in root_node.get("agents").map(YamlNode::entries).unwrap_or_default() {
            // Only a table describes an agent.
            let YamlContent::Mapping(agent_settings) = &agent_entry.value.content else { continue };
            // The files are merged by the agent's id, and the first file decides the order.
            let agent_index = match agents.iter().position(|(agent_id, _)| *agent_id == agent_entry.key) {
                Some(agent_index) => agent_index,
                None if agents.len() >= MAX_AGENTS => continue,
                None => {
                    agents.push((agent_entry.key.clone(), Vec::new()));
                    agents.len() - 1
                }
            };
            for setting in agent_settings {
                let Some(value) = setting.value.scalar_text() else { continue };
                let collected = &mut agents[agent_index].1;
                collected.retain(|(setting_name, _)| *setting_name != setting.key);
                collected.push((setting.key.clone(), value.to_string()));
            }
        }
    }
    let mut roster = Roster::default();
    let mut known_names = BTreeSet::new();
    for (agent_id, agent_settings) in &agents {
        // The columns of a manifest, by the names that these files have for them, so that both forms share one reader.
        let header_row: Vec<String> = agent_settings
            .iter()
            .map(|(setting_name, _)| match setting_name.as_str() {
                "name" => "displayname".into(),
                "description" => "role".into(),
                other_key => other_key.to_lowercase(),
            })
            .chain(["name".to_string()])
            .collect();
        let fields: Vec<String> =
            agent_settings.iter().map(|(_, value)| value.clone()).chain([agent_id.clone()]).collect();
        roster.add_row(&RosterRow { header_row: &header_row, fields: &fields }, &mut known_names);
    }
    (!agents.is_empty()).then_some(roster)
}

/// Parses the roster of a CSV manifest.
pub fn parse_roster(csv_text: &str) -> Roster {
    let csv_table = csv::parse_csv(csv_text);
    let mut roster = Roster::default();
    if let Some(line_number) = csv_table.unclosed_quote_line {
        roster.remarks.push(format!("has an unclosed quote in line {line_number}"));
    }
    let Some((header_row, data_rows)) = csv_table.rows.split_first() else {
        if csv_table.unclosed_quote_line.is_none() {
            roster.remarks.push("is empty".into());
        }
        return roster;
    };
    let header_row: Vec<String> = header_row.iter().map(|column_name| column_name.trim().to_lowercase()).collect();
    // Without one of these columns no row could be named.
    if !NAME_COLUMNS.iter().any(|column_name| header_row.iter().any(|column| column == column_name)) {
        roster.remarks.push("has no column `title`, `displayName` or `name`".into());
        return roster;
    }
    let mut known_names = BTreeSet::new();
    for data_row in data_rows {
        roster.add_row(&RosterRow { header_row: &header_row, fields: data_row }, &mut known_names);
    }
    let left_out = known_names.len() - roster.personas.len();
    if left_out > 0 {
        roster.remarks.push(format!("lists more than {MAX_PERSONAS} personas; {left_out} are ignored"));
    }
    roster
}

impl Roster {
    /// Adds the agents that the project has made itself. A persona that is known by its name is not added again.
    pub fn add_custom_agents(&mut self, csv_text: &str) {
        let custom = parse_roster(csv_text);
        for mut member in custom.members {
            if member.module.is_empty() {
                member.module = CUSTOM_MODULE.into();
            }
            let is_known = self.members.iter().any(|known| known.id == member.id && known.module == member.module);
            if !is_known && self.members.len() < MAX_AGENTS {
                self.members.push(member);
            }
        }
        for persona in custom.personas {
            let is_known = self.personas.iter().any(|known| known.name.eq_ignore_ascii_case(&persona.name));
            // Custom agents are wanted more than others, so they come even if there are many.
            if !is_known {
                self.personas.push(persona);
            }
        }
        let describe_remark = |remark: &String| format!("(its custom-agents.csv {remark})");
        self.remarks.extend(custom.remarks.iter().map(describe_remark));
    }

    /// Adds a row as a member and, if it can review a text, as a persona.
    fn add_row(&mut self, roster_row: &RosterRow<'_>, known_names: &mut BTreeSet<String>) {
        if let Some(member) = roster_row.to_member().filter(|_| self.members.len() < MAX_AGENTS) {
            self.members.push(member);
        }
        let Some(persona) = roster_row.to_persona().filter(|_| !roster_row.is_meta()) else { return };
        // Every persona is counted by its name, even above the limit, so that the remark can say how many were left out.
        if known_names.insert(persona.name.to_lowercase()) && known_names.len() <= MAX_PERSONAS {
            self.personas.push(persona);
        }
    }
}

/// The columns for a persona's name and focus: the first one that is not empty counts.
const NAME_COLUMNS: [&str; 3] = ["title", "displayname", "name"];
const FOCUS_COLUMNS: [&str; 3] = ["role", "capabilities", "identity"];

/// A row with the header that names its columns.
struct RosterRow<'a> {
    header_row: &'a [String],
    fields: &'a [String],
}

impl RosterRow<'_> {
    fn get(&self, column: &str) -> String {
        let index = self.header_row.iter().position(|name| name == column);
        index.and_then(|index| self.fields.get(index)).map(|field| clean_field(field)).unwrap_or_default()
    }

    fn first_non_empty(&self, columns: [&str; 3]) -> String {
        columns.iter().map(|column| self.get(column)).find(|field_text| !field_text.is_empty()).unwrap_or_default()
    }

    fn to_member(&self) -> Option<RosterMember> {
        let agent_id = self.get("name");
        // Some manifests have no ids; the name then identifies the agent.
        let agent_id = if agent_id.is_empty() { self.get("displayname") } else { agent_id };
        (!agent_id.is_empty()).then(|| RosterMember {
            id: truncate_chars(&agent_id, MAX_NAME_LENGTH),
            name: truncate_chars(&self.get("displayname"), MAX_NAME_LENGTH),
            title: truncate_chars(&self.get("title"), MAX_NAME_LENGTH),
            module: truncate_chars(&self.get("module"), MAX_NAME_LENGTH),
            skill: truncate_chars(&self.get("canonicalid"), MAX_NAME_LENGTH),
        })
    }

    fn to_persona(&self) -> Option<Persona> {
        let persona_name = self.first_non_empty(NAME_COLUMNS);
        let focus = self.first_non_empty(FOCUS_COLUMNS);
        (!persona_name.is_empty()).then(|| {
            Persona::new(truncate_chars(&persona_name, MAX_NAME_LENGTH), truncate_chars(&focus, MAX_FOCUS_LENGTH))
        })
    }

    /// Whether the agent orchestrates others or builds BMAD itself; such an agent has nothing to say about a text.
    fn is_meta(&self) -> bool {
        let is_orchestrator = |text: &str| text.to_lowercase().contains("orchestrator");
        let agent_name = self.get("name").to_lowercase();
        agent_name == "bmad-master"
            || self.get("module") == "bmb"
            || is_orchestrator(&agent_name)
            || is_orchestrator(&self.get("title"))
    }
}

/// A field as one line without entities, doubled quotes and control characters.
fn clean_field(field: &str) -> String {
    let mut cleaned = sanitize_to_line(&decode_entities(field));
    // Quotes may have been escaped more than once, so one pass is not enough.
    while cleaned.contains("\"\"") {
        cleaned = cleaned.replace("\"\"", "\"");
    }
    cleaned
}

/// Decodes the HTML entities that BMAD's installer writes, and numeric ones, but only once: `&amp;quot;` is the text `&quot;`.
fn decode_entities(encoded_text: &str) -> String {
    let mut decoded_text = String::new();
    let mut remaining_text = encoded_text;
    while let Some(start) = remaining_text.find('&') {
        decoded_text.push_str(&remaining_text[..start]);
        remaining_text = &remaining_text[start..];
        // No entity is longer; a text of ampersands must not be searched to its end for each of them.
        let end = remaining_text.bytes().take(MAX_ENTITY_LENGTH).position(|byte| byte == b';');
        let entity = end.and_then(|end| Some((decode_entity(&remaining_text[1..end])?, end)));
        match entity {
            Some((entity_character, end)) => {
                decoded_text.push(entity_character);
                remaining_text = &remaining_text[end + 1..];
            }
            None => {
                decoded_text.push('&');
                remaining_text = &remaining_text[1..];
            }
        }
    }
    decoded_text + remaining_text
}

fn decode_entity(entity: &str) -> Option<char> {
    match entity {
        "quot" => Some('"'),
        "apos" => Some('\''),
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "nbsp" => Some(' '),
        _ => {
            let code_text = entity.strip_prefix('#')?;
            let code_point = match code_text.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => code_text.parse(),
            };
            code_point.ok().and_then(char::from_u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_roster(csv_text: &str) -> String {
        let roster = parse_roster(csv_text);
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
        assert_eq!(render_roster(text), "Billing Clerk (Invoices & refunds)\nShip's Cook (Feeds forty)");
    }

    #[test]
    fn columns_are_found_by_their_names_in_any_order() {
        let text = "\u{feff}canonicalId,capabilities,Name,displayName,title\r\n\
            x,\"nets, lines\",fisher,Cid,\r\n\
            y,,pilot,,\r\n\
            z,\"asks \"\"\"\"why?\"\"\"\" often\",sailor,Dan,Able Sailor\r\n\
            short\r\n";
        assert_eq!(render_roster(text), "Cid (nets, lines)\npilot\nAble Sailor (asks \"why?\" often)");
    }

    #[test]
    fn orchestrators_and_builder_agents_are_no_personas_and_a_scrum_master_is() {
        let text = "name,title,role,module\n\
            bmad-master,Executor,r,core\nparty-orchestrator,Host,r,x\nlead,Workflow Orchestrator,r,x\n\
            agent-builder,Agent Building Expert,r,bmb\nsm,Scrum Master,Sprint Orchestrator,bmm\n";
        assert_eq!(render_roster(text), "Scrum Master (Sprint Orchestrator)");
    }

    #[test]
    fn late_eras_have_their_agents_in_toml() {
        let team_toml = "[core]\nx = 1\n[agents.bmad-agent-pilot]\nmodule = \"bmm\"\nname = \"Ann\"\ntitle = \"Pilot\"\n\
            description = \"Knows the charts\"\n\
            [agents.bmad-agent-cook]\nname = \"Ben\"\ntitle = \"Cook\"\n";
        let user_toml = "[agents.bmad-agent-cook]\ntitle = \"Head Cook\"\ndescription = \"Feeds\"\n[agents.mate]\nname = \"Cid\"\n\
            [agents]\nbroken = 1\n";
        let roster = roster_from_toml(&[team_toml.into(), user_toml.into()]).unwrap();
        let personas: Vec<String> = roster.personas.iter().map(ToString::to_string).collect();
        assert_eq!(personas, ["Pilot (Knows the charts)", "Head Cook (Feeds)", "Cid"]);
        assert_eq!(roster.members[1].name, "Ben");
        assert_eq!(roster_from_toml(&["[core]\n".into()]), None);
    }

    #[test]
    fn a_roster_is_found_where_its_era_keeps_it() {
        use crate::project_files::InMemoryFiles;
        let toml_file = ("_bmad/config.toml", "[agents.a]\ntitle = \"T\"\n");
        let csv_file = ("_bmad/_config/agent-manifest.csv", "name,title\nb,B\n");
        let find_first = |files: &[(&str, &str)]| {
            let (roster, path) = find_roster(&InMemoryFiles::from_files(files.iter().copied()), &mut Vec::new())?;
            Some(format!("{} in {path}", roster.members.first().map_or("", |member| &member.id)))
        };
        assert_eq!(find_first(&[]), None);
        assert_eq!(find_first(&[("_bmad/config.toml", "[core]\n")]), None);
        assert_eq!(find_first(&[toml_file]).as_deref(), Some("a in _bmad/config.toml"));
        assert_eq!(find_first(&[csv_file, toml_file]).as_deref(), Some("b in _bmad/_config/agent-manifest.csv"));
        let old_location = find_first(&[("bmad/_cfg/agent-manifest.csv", "name\nc\n")]);
        assert_eq!(old_location.as_deref(), Some("c in bmad/_cfg/agent-manifest.csv"));
    }

    #[test]
    fn custom_agents_of_the_project_are_added() {
        use crate::project_files::InMemoryFiles;
        let manifest = ("_bmad/_config/agent-manifest.csv", "name,title,module\ndev,Developer,bmm\n");
        let custom =
            ("_bmad/_config/custom-agents.csv", "name,title,role,module\ntax,Tax Lawyer,taxes,\nd,developer,x,acme\n");
        let render = |files: &[(&str, &str)]| {
            let (roster, path) =
                find_roster(&InMemoryFiles::from_files(files.iter().copied()), &mut Vec::new()).unwrap();
            let members: Vec<String> =
                roster.members.iter().map(|member| format!("{}:{}", member.module, member.id)).collect();
            let personas: Vec<&str> = roster.personas.iter().map(|persona| persona.name.as_str()).collect();
            format!("{} | {} | {path}", members.join(" "), personas.join(", "))
        };
        assert_eq!(
            render(&[manifest, custom]),
            "bmm:dev custom:tax acme:d | Developer, Tax Lawyer | _bmad/_config/agent-manifest.csv"
        );
        // Late eras have their own agents in TOML, and those of the project in the files below `custom`.
        let late_files = [
            ("_bmad/config.toml", "[agents.a]\ntitle = \"Analyst\"\n"),
            ("_bmad/custom/config.toml", "[agents.tax]\ntitle = \"Tax Lawyer\"\n"),
        ];
        assert_eq!(render(&late_files), ":a :tax | Analyst, Tax Lawyer | _bmad/config.toml");
        let only_custom = [("_bmad/bmm/config.yaml", "user_name: x\n"), custom];
        assert_eq!(render(&only_custom), "custom:tax acme:d | Tax Lawyer, developer | _bmad/_config/custom-agents.csv");
    }

    #[test]
    fn one_name_is_one_persona() {
        assert_eq!(render_roster("title,role\nWriter,guides\nwriter,other\nCook,\n"), "Writer (guides)\nCook");
    }

    #[test]
    fn long_texts_and_long_lists_are_cut() {
        let row = |number: usize| format!("T{number},{}\n", "word ".repeat(100));
        let text = format!("title,role\n{}", (0..43).map(row).collect::<String>());
        let roster = parse_roster(&text);
        assert_eq!(roster.personas.len(), MAX_PERSONAS);
        assert!(roster.personas.iter().all(|persona| persona.focus.chars().count() <= MAX_FOCUS_LENGTH + 1));
        assert_eq!(roster.remarks, ["lists more than 40 personas; 3 are ignored"]);
    }

    #[test]
    fn an_invalid_manifest_is_reported_and_readable_rows_are_kept() {
        for (text, expected) in [
            ("", "[it is empty]"),
            ("path,hash\na,b\n", "[it has no column `title`, `displayName` or `name`]"),
            ("title,role\n", ""),
            ("title,role\nCook,food\n\"Clerk,x\nPilot,y\n", "Cook (food)\n[it has an unclosed quote in line 3]"),
            ("\"", "[it has an unclosed quote in line 1]"),
        ] {
            assert_eq!(render_roster(text), expected, "{text:?}");
        }
    }

    #[test]
    fn entities_are_decoded_once() {
        for (text, expected) in [
            ("&lt;b&gt; &#39;x&#x27; &amp;quot;", "<b> 'x' &quot;"),
            ("R&D; a & b &unknown; &#xffffffff; &", "R&D; a & b &unknown; &#xffffffff; &"),
            ("a&#7;b\u{1b}[2J", r"a\u{7}b\u{1b}[2J"),
        ] {
            assert_eq!(clean_field(text), expected);
        }
    }
}

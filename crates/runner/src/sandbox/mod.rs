//! Decides what the kernel lets each process do, from the settings and from what the process is for.
//!
//! | who | may write |
//! | --- | --- |
//! | reviewers, challengers | the session files of their client |
//! | fixers | their workspace, and the same |
//! | developers | their workspace, the same, and the caches of package managers |
//! | checks, commit hooks | the workspace that they check, and the caches |
//!
//! Everyone has a private directory for temporary files. Commands that prepare a workspace and notices are the user's own, run
//! before any agent or beside them, and are not restricted.

mod client_files;
mod package_caches;
mod private_tmp;

use std::path::{Path, PathBuf};

use tribunal_agents::clients::AgentClient;
use tribunal_core::{
    engine::sandbox::{NetworkScope, ReadScope, SandboxMode, SandboxSettings},
    tasks::purpose::AgentAccess,
};
use tribunal_supervise::{NetworkRule, ProcessCommand, SandboxRules, SandboxSupport};

use crate::effects::EffectContext;
pub(crate) use private_tmp::{PrivateTmp, remove_leftover_dirs};

/// Directories of the system that every program needs to read.
const SYSTEM_DIRS: [&str; 16] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix",
    "/snap",
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/var/lib",
    "/var/cache",
];

/// What a process is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SandboxPurpose<'a> {
    Agent {
        access: AgentAccess,
        /// The directory that belongs to the agent.
        workspace: &'a Path,
        /// Our directory with the files that the agent is pointed at.
        scratch_dir: &'a Path,
        client: Option<AgentClient>,
    },
    /// A check or a commit hook. The paths are its workspace and, for hooks, our git directory.
    Check { writable_paths: &'a [PathBuf] },
}

/// Whether processes are restricted: the settings ask for it, and the kernel can do it.
pub fn is_enforced(settings: &SandboxSettings, support: SandboxSupport) -> bool {
    settings.mode != SandboxMode::Off && support.is_available()
}

/// What a run says about its sandbox in the beginning.
pub fn describe_sandbox(settings: &SandboxSettings, support: SandboxSupport) -> String {
    if settings.mode == SandboxMode::Off {
        return "no sandbox: `sandbox.mode` is off, so agents can write wherever you can".to_string();
    }
    if !support.is_available() {
        return format!("no sandbox: {support}; agents can write wherever you can");
    }
    format!("agents write only in their workspaces (sandbox: {support})")
}

/// Lists what the kernel cannot enforce although the settings ask for it.
pub fn list_gaps(settings: &SandboxSettings, support: SandboxSupport) -> Vec<&'static str> {
    if is_enforced(settings, support) { support.list_gaps(&network_rule(&settings.network)) } else { Vec::new() }
}

fn network_rule(scope: &NetworkScope) -> NetworkRule {
    match scope {
        NetworkScope::All => NetworkRule::Everything,
        NetworkScope::None => NetworkRule::Nothing,
        NetworkScope::Ports(ports) => NetworkRule::Ports(ports.clone()),
    }
}

impl EffectContext {
    /// Whether processes of this run are restricted.
    fn is_sandboxed(&self) -> bool {
        self.process_policy.keeper_program.is_some()
            && is_enforced(&self.settings.sandbox, self.process_policy.sandbox_support)
    }

    /// Whether an agent with this client is restricted.
    pub fn is_agent_sandboxed(&self, client: Option<AgentClient>) -> bool {
        self.is_sandboxed() && client.is_none_or(|client| client.facts.runs_in_sandbox)
    }

    /// Restricts a command, and gives it a private directory for temporary files, which lasts as long as the result.
    pub fn restrict_command(
        &self,
        command: &mut ProcessCommand,
        purpose: SandboxPurpose<'_>,
    ) -> std::io::Result<Option<PrivateTmp>> {
        if !self.is_restricted(purpose) {
            return Ok(None);
        }
        let private_tmp = PrivateTmp::create(&self.launch_env.user_dirs.temporary, &self.run_id)?;
        for variable in ["TMPDIR", "TMP", "TEMP", "CLAUDE_CODE_TMPDIR"] {
            command.extra_env.insert(variable.to_string(), private_tmp.path().as_os_str().to_owned());
        }
        // Daemons that would act for the agent without its restrictions.
        command.removed_env.extend(["TMUX", "TMUX_PANE", "STY", "DBUS_SESSION_BUS_ADDRESS"].map(String::from));
        command.sandbox = Some(self.build_rules(purpose, private_tmp.path()));
        Ok(Some(private_tmp))
    }

    /// Whether a process can write to the user's project, other than to our own directory in it.
    pub fn can_write_project(&self, purpose: SandboxPurpose<'_>) -> bool {
        if !self.is_restricted(purpose) {
            return true;
        }
        let to_real_path = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let project_root = to_real_path(self.project.root());
        let home_dir = to_real_path(&self.project.home_dir());
        self.list_writable_paths(purpose).iter().map(|path| to_real_path(path)).any(|path| {
            project_root.starts_with(&path) || (path.starts_with(&project_root) && !path.starts_with(&home_dir))
        })
    }

    fn is_restricted(&self, purpose: SandboxPurpose<'_>) -> bool {
        match purpose {
            SandboxPurpose::Agent { client, .. } => self.is_agent_sandboxed(client),
            SandboxPurpose::Check { .. } => self.is_sandboxed(),
        }
    }

    /// Lists what a process may write, other than its private directory for temporary files.
    fn list_writable_paths(&self, purpose: SandboxPurpose<'_>) -> Vec<PathBuf> {
        let user_dirs = &self.launch_env.user_dirs;
        let mut writable_paths = Vec::new();
        match purpose {
            SandboxPurpose::Agent { access, workspace, client, .. } => {
                if access >= AgentAccess::Write {
                    writable_paths.push(workspace.to_path_buf());
                }
                if access >= AgentAccess::Develop {
                    writable_paths.extend(package_caches::list_caches(user_dirs));
                }
                let client_dir = client.and_then(|client| user_dirs.by_client.get(client.id));
                if let Some((client, client_dir)) = client.zip(client_dir) {
                    writable_paths.extend(client_files::list_writable(client, client_dir, workspace));
                }
            }
            SandboxPurpose::Check { writable_paths: check_paths } => {
                writable_paths.extend(check_paths.iter().cloned());
                writable_paths.extend(package_caches::list_caches(user_dirs));
            }
        }
        writable_paths.extend(self.settings.sandbox.write.iter().map(|path| self.resolve_user_path(path)));
        writable_paths
    }

    fn build_rules(&self, purpose: SandboxPurpose<'_>, private_tmp: &Path) -> SandboxRules {
        let settings = &self.settings.sandbox;
        let user_dirs = &self.launch_env.user_dirs;
        let mut writable_paths = vec![private_tmp.to_path_buf()];
        writable_paths.extend(self.list_writable_paths(purpose));
        let mut readable_paths = Vec::new();
        let network = match purpose {
            SandboxPurpose::Agent { workspace, scratch_dir, client, .. } => {
                readable_paths.extend([workspace.to_path_buf(), scratch_dir.to_path_buf()]);
                readable_paths.extend(self.launch_env.own_program.parent().map(Path::to_path_buf));
                readable_paths.extend(client.and_then(|client| user_dirs.by_client.get(client.id)).cloned());
                &settings.network
            }
            SandboxPurpose::Check { .. } => &settings.check_network,
        };
        let readable_paths = (settings.read == ReadScope::Strict).then(|| {
            let system_dirs = SYSTEM_DIRS.iter().map(PathBuf::from);
            // A clone borrows the objects of the user's repository.
            let own_dirs = user_dirs.cargo.iter().cloned().chain([self.project.root().join(".git")]);
            let named_paths = settings.read_paths.iter().map(|path| self.resolve_user_path(path));
            readable_paths
                .into_iter()
                .chain(system_dirs)
                .chain(user_dirs.programs.iter().cloned())
                .chain(own_dirs)
                .chain(named_paths)
                .collect()
        });
        SandboxRules { writable_paths, readable_paths, network: network_rule(network) }
    }

    /// Resolves a path of the settings.
    fn resolve_user_path(&self, path_text: &str) -> PathBuf {
        match (path_text.strip_prefix("~/"), &self.launch_env.user_dirs.home) {
            (Some(below_home), Some(home_dir)) => home_dir.join(below_home),
            _ if path_text == "~" => self.launch_env.user_dirs.home.clone().unwrap_or_default(),
            _ => self.project.root().join(path_text),
        }
    }
}

//! Turns rules into a ruleset of the kernel.

use std::{io, thread};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, NetPort, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

use super::{NetworkRule, SandboxRules, SandboxSupport, system_calls};

/// The newest version of Landlock that this code knows. Older kernels enforce what they can.
const KNOWN_ABI: ABI = ABI::V9;

/// Devices that every program may use.
const DEVICES: [&str; 8] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// Services with a socket that programs ask for the addresses of hosts and for the names of users.
const NAME_SERVICES: [&str; 4] = ["/run/systemd/resolve", "/run/nscd", "/var/run/nscd", "/run/systemd/userdb"];

/// A ruleset that a process can apply to itself.
pub(crate) struct PreparedRules {
    ruleset: RulesetCreated,
    call_filter: Vec<seccompiler::sock_filter>,
}

impl PreparedRules {
    /// Creates the ruleset. Nothing is restricted yet.
    pub fn new(rules: &SandboxRules) -> io::Result<PreparedRules> {
        let ruleset = create_ruleset(rules).map_err(io::Error::other)?;
        Ok(PreparedRules { ruleset, call_filter: system_calls::build_filter() })
    }

    /// Restricts this thread and everything that it starts from now on.
    pub fn restrict_self(self) -> io::Result<()> {
        self.ruleset.restrict_self().map(drop).map_err(io::Error::other)?;
        seccompiler::apply_filter(&self.call_filter).map_err(io::Error::other)
    }
}

fn create_ruleset(rules: &SandboxRules) -> Result<RulesetCreated, RulesetError> {
    let mut handled_rights = AccessFs::from_write(KNOWN_ABI);
    if rules.readable_paths.is_some() {
        handled_rights |= AccessFs::from_read(KNOWN_ABI);
    }
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(handled_rights)?
        .scope(Scope::from_all(KNOWN_ABI))?;
    match &rules.network {
        NetworkRule::Everything => {}
        NetworkRule::Ports(_) => ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?,
        NetworkRule::Nothing => ruleset = ruleset.handle_access(AccessNet::ConnectTcp | AccessNet::BindTcp)?,
    }
    let all_rights = AccessFs::from_all(KNOWN_ABI) & handled_rights;
    let read_rights = AccessFs::from_read(KNOWN_ABI) & handled_rights;
    let mut created = ruleset
        .create()?
        .add_rules(path_beneath_rules(&rules.writable_paths, all_rights))?
        .add_rules(path_beneath_rules(DEVICES, all_rights))?
        .add_rules(path_beneath_rules(NAME_SERVICES, read_rights | AccessFs::ResolveUnix))?;
    if let Some(readable_paths) = &rules.readable_paths {
        created = created.add_rules(path_beneath_rules(readable_paths, read_rights))?;
    }
    if let NetworkRule::Ports(ports) = &rules.network {
        for port in ports {
            created = created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
        }
    }
    Ok(created)
}

/// Restricts a thread that does nothing else, and looks at what came of it.
pub(super) fn probe_kernel() -> SandboxSupport {
    let restrict_thread = || {
        let everything: BitFlags<AccessFs> = AccessFs::from_all(KNOWN_ABI);
        let created = Ruleset::default().handle_access(everything)?.create()?;
        created.restrict_self().map(|status| status.landlock)
    };
    match thread::spawn(restrict_thread).join() {
        Ok(Ok(LandlockStatus::Available { effective_abi, kernel_abi })) => {
            let version = kernel_abi.unwrap_or(effective_abi as i32);
            SandboxSupport::Available { version: u32::try_from(version).unwrap_or_default() }
        }
        Ok(Ok(LandlockStatus::NotEnabled)) => SandboxSupport::NotEnabled,
        // A system call that is filtered fails in other ways; then nothing can be enforced either.
        Ok(Ok(LandlockStatus::NotImplemented) | Err(_)) | Err(_) => SandboxSupport::NotImplemented,
    }
}

//! A Galera cluster of private servers on this machine.
//!
//! Invariant: every node has ports of its own on 127.0.0.1 for clients, the group and increments of
//! state, and all begin with copies of one state of the cluster, so that a joining node needs only
//! the increment since. The whole state is never transferred (no SST): a node that was killed, or
//! stopped for longer than its peers remember, does not come back.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use iostrata_change::{ChangeId, Platform, ServerDirectory, Session};

use super::error::PrivateError;
use super::ports::free_ports;
use super::program::ServerProgram;
use super::server::{DataSource, PrivatePlan, PrivateServer};

/// Where Debian's and other packages have the provider.
const PROVIDERS: [&str; 4] = [
    "/usr/lib/galera/libgalera_smm.so",
    "/usr/lib/libgalera_smm.so",
    "/usr/lib64/galera-4/libgalera_smm.so",
    "/usr/lib64/libgalera_smm.so",
];
/// Name of the script that a server runs for a state transfer by this method.
const TRANSFER: &str = "wsrep_sst_increment";

/// The library that replicates, if it is installed.
pub fn galera_provider() -> Option<PathBuf> {
    PROVIDERS.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// What kind of cluster is wanted.
#[derive(Clone, Debug)]
pub struct ClusterPlan {
    /// The program; MariaDB, which is built with Galera's interface.
    pub program: ServerProgram,
    /// The directory to make; it holds those of the nodes.
    pub dir: PathBuf,
    /// How many nodes.
    pub nodes: usize,
    /// Options of every node under the server's own names.
    pub options: Vec<String>,
}

/// Running nodes of a cluster.
#[derive(Debug)]
pub struct PrivateCluster {
    directory: ChangeId,
    nodes: Vec<PrivateServer>,
}

impl PrivateCluster {
    /// Starts the nodes one after the other; the first one founds the cluster. A node lets clients
    /// in before it has joined: check `wsrep_ready`.
    ///
    /// # Errors
    /// [`PrivateError::NoGalera`], and as [`PrivateServer::start`]; nothing is left then.
    pub fn start<W: Platform>(
        session: &mut Session<W>,
        plan: &ClusterPlan,
    ) -> Result<Self, PrivateError> {
        let provider = provider(&plan.program)?;
        // Absolute, because scripts name it.
        let dir = session.platform().real(&plan.dir);
        let made = session.apply(ServerDirectory { path: dir.clone() })?;
        let mut cluster = Self { directory: made.id, nodes: Vec::new() };
        let plan = ClusterPlan { dir, ..plan.clone() };
        let started = cluster.prepare(session, &plan, &provider);
        let started = started.and_then(|()| cluster.run(session));
        match started {
            Ok(()) => Ok(cluster),
            Err(error) => {
                cluster.remove(session)?;
                Err(error)
            }
        }
    }

    fn prepare<W: Platform>(
        &mut self,
        session: &mut Session<W>,
        plan: &ClusterPlan,
        provider: &Path,
    ) -> Result<(), PrivateError> {
        let ports = ports_of(plan.nodes).map_err(|source| {
            PrivateError::system("find free ports of", Path::new("127.0.0.1"), source)
        })?;
        let program = write_scripts(&plan.program, &plan.dir)?;
        for (number, own) in ports.iter().enumerate() {
            let dir = plan.dir.join((number + 1).to_string());
            let mut node = PrivatePlan::new(program.clone(), dir);
            node.options = node_options(provider, own, &ports);
            node.options.extend(plan.options.iter().cloned());
            node.port = Some(own.client);
            if let Some(first) = self.nodes.first() {
                node.data = DataSource::CopyOf(first.data_dir().to_owned());
            }
            self.nodes.push(PrivateServer::prepare(session, &node)?);
            if let [first] = &mut self.nodes[..] {
                // Once up and down again, its state holds the identity of its cluster.
                first.run(session, &founding())?;
                first.stop(session)?;
            }
        }
        Ok(())
    }

    fn run<W: Platform>(&mut self, session: &mut Session<W>) -> Result<(), PrivateError> {
        let founding = founding();
        for (number, node) in self.nodes.iter_mut().enumerate() {
            node.run(session, if number == 0 { &founding } else { &[] })?;
        }
        Ok(())
    }

    /// The nodes, the founder first.
    pub fn nodes(&self) -> &[PrivateServer] {
        &self.nodes
    }

    /// The same, to stop one and start it again. One that was killed has lost its position and
    /// cannot rejoin.
    pub fn nodes_mut(&mut self) -> &mut [PrivateServer] {
        &mut self.nodes
    }

    /// Stops all nodes, the founder last, and removes their directories.
    ///
    /// # Errors
    /// Of the first node that cannot be stopped; the session tries again at its end.
    pub fn remove<W: Platform>(mut self, session: &mut Session<W>) -> Result<(), PrivateError> {
        while let Some(node) = self.nodes.pop() {
            node.remove(session)?;
        }
        session.undo(self.directory)?;
        Ok(())
    }
}

/// Ports of a node on 127.0.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NodePorts {
    client: u16,
    group: u16,
    /// For the writes that a node has missed.
    increments: u16,
}

/// Ports of all nodes.
fn ports_of(nodes: usize) -> io::Result<Vec<NodePorts>> {
    let free = free_ports(3 * nodes)?;
    let ports =
        |three: &[u16]| NodePorts { client: three[0], group: three[1], increments: three[2] };
    Ok(free.chunks(3).map(ports).collect())
}

fn node_options(provider: &Path, own: &NodePorts, all: &[NodePorts]) -> Vec<String> {
    let members: Vec<String> = all.iter().map(|node| format!("127.0.0.1:{}", node.group)).collect();
    let provider_options = [
        "base_host=127.0.0.1".to_owned(),
        format!("base_port={}", own.group),
        format!("gmcast.listen_addr=tcp://127.0.0.1:{}", own.group),
        format!("ist.recv_addr=127.0.0.1:{}", own.increments),
        "gcache.size=32M".to_owned(),
        "pc.recovery=false".to_owned(),
    ];
    vec![
        "--wsrep-on=ON".to_owned(),
        format!("--wsrep-provider={}", provider.display()),
        format!("--wsrep-provider-options={}", provider_options.join(";")),
        "--wsrep-cluster-name=iostrata".to_owned(),
        format!("--wsrep-cluster-address=gcomm://{}", members.join(",")),
        format!("--wsrep-node-name=node-{}", own.client),
        format!("--wsrep-node-address=127.0.0.1:{}", own.group),
        format!("--wsrep-node-incoming-address=127.0.0.1:{}", own.client),
        format!("--wsrep-sst-method={}", TRANSFER.trim_start_matches("wsrep_sst_")),
        format!("--wsrep-sst-receive-address=127.0.0.1:{}", own.client),
        "--binlog-format=ROW".to_owned(),
        "--innodb-autoinc-lock-mode=2".to_owned(),
    ]
}

fn founding() -> [String; 1] {
    ["--wsrep-new-cluster".to_owned()]
}

/// Writes what a server runs for a state transfer, and a script that runs the server so that it is
/// found.
fn write_scripts(program: &ServerProgram, dir: &Path) -> Result<ServerProgram, PrivateError> {
    let write = |name: &str, text: &str| {
        let file = dir.join(name);
        let mode = fs::Permissions::from_mode(0o755);
        let written = fs::write(&file, text).and_then(|()| fs::set_permissions(&file, mode));
        written.map_err(|source| PrivateError::system("write", &file, source))
    };
    write(TRANSFER, include_str!("transfer.sh"))?;
    let (path, directory) = (quoted(&program.path), quoted(dir));
    let run = format!("#!/bin/sh\nPATH={directory}:\"$PATH\" exec {path} \"$@\"\n");
    write("server", &run)?;
    Ok(program.run_by(dir.join("server")))
}

fn provider(program: &ServerProgram) -> Result<PathBuf, PrivateError> {
    if !program.version.is_mariadb {
        return Err(PrivateError::NoGalera {
            why: format!("{} is not built with it", program.version),
            fix: "use a mariadbd",
        });
    }
    galera_provider().ok_or_else(|| PrivateError::NoGalera {
        why: format!("there is none of {}", PROVIDERS.join(", ")),
        fix: "install it (Debian package galera-4)",
    })
}

/// A path as a word of the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn nodes_share_no_port_and_name_each_other() {
        let ports = ports_of(3).unwrap();
        let each = ports.iter().flat_map(|node| [node.client, node.group, node.increments]);
        assert_eq!(each.collect::<BTreeSet<u16>>().len(), 9);
        let options = node_options(Path::new("/lib/x.so"), &ports[1], &ports);
        let members = ports.iter().map(|node| format!("127.0.0.1:{}", node.group));
        let address =
            format!("--wsrep-cluster-address=gcomm://{}", members.collect::<Vec<_>>().join(","));
        assert!(options.contains(&address), "{options:?}");
        let own = format!("--wsrep-node-incoming-address=127.0.0.1:{}", ports[1].client);
        assert!(options.contains(&own), "{options:?}");
    }

    #[test]
    fn any_path_is_one_word() {
        assert_eq!(quoted(Path::new("/a b/c")), "'/a b/c'");
        assert_eq!(quoted(Path::new("/it's")), "'/it'\\''s'");
    }
}

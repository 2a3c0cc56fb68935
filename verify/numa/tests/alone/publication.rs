//! Other processes find one file for each published balancer of this one.

use percid_numa::Balancer;

/// Returns the number of balancers that other processes find in this one.
fn links() -> usize {
    let files = std::fs::read_dir("/proc/self/fd").expect("/proc");
    let targets = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
    targets.filter(|name| name.as_os_str() == "/memfd:percid-numa (deleted)").count()
}

#[test]
fn each_balancer_has_a_file_of_its_own_until_it_is_dropped() {
    let _alone = crate::alone();
    let balancers = [Balancer::new(), Balancer::new()];
    assert_eq!(links(), 0);
    for balancer in &balancers {
        balancer.publish().expect("a memfd and a thread");
        balancer.publish().expect("published already");
    }
    assert_eq!(links(), 2);
    drop(balancers);
    assert_eq!(links(), 0);
}

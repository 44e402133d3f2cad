#!/usr/bin/perl
# Generates /var/lib/lxc/ID/config from /etc/pve/lxc/ID.conf in the order in which pve-container does: includes,
# id map, names, limits, mounts, `dev[n]` rules, raw lines last. Perl, because that is what a Proxmox host has.
# Not modelled: storage, network devices, mount points, pending changes being applied.
use strict;
use warnings;

my $id = $ARGV[0] // die "usage: lxc-config.pl ID\n";
my $dir = "/var/lib/lxc/$id";
my ($options, $raw) = current("/etc/pve/lxc/$id.conf");
my $unprivileged = $options->{unprivileged} // 0;
my @lines = (
    'lxc.arch = amd64',
    'lxc.include = /usr/share/lxc/config/common.conf',
    base_rules(), limits(),
    "lxc.rootfs.path = $dir/rootfs",
    'lxc.uts.name = ' . ($options->{hostname} // "ct$id"),
    'lxc.cgroup.relative = 0',
    "lxc.cgroup.dir.monitor = lxc.monitor/$id",
    "lxc.cgroup.dir.container = lxc/$id",
    'lxc.cgroup.dir.container.inner = ns',
    'lxc.net.0.type = empty',
    passthrough(),
    map { "$_->[0] = $_->[1]" } @$raw,
);
open(my $out, '>', "$dir/config") or die "$dir/config: $!\n";
print $out map { "$_\n" } @lines;
close($out) or die "$dir/config: $!\n";

# The options and raw pairs in force: what stands above the first section (snapshots, pending changes).
sub current {
    my ($path) = @_;
    my (%options, @raw);
    open(my $in, '<', $path) or die "$path: $!\n";
    while (my $line = <$in>) {
        last if $line =~ /^\[/;
        next if $line =~ /^\s*$/ || $line =~ /^#/;
        if ($line =~ /^(lxc\.[a-z0-9_\-\.]+)(?::|\s*=)\s*(.*?)\s*$/) { push @raw, [$1, $2] }
        elsif ($line =~ /^([a-z][a-z_]*\d*):\s*(.+?)\s*$/) { $options{$1} = $2 }
        else { warn "$path: ignored: $line" }
    }
    return (\%options, \@raw);
}

sub base_rules {
    return () if !$unprivileged;
    return (
        'lxc.include = /usr/share/lxc/config/userns.conf',
        'lxc.cgroup2.devices.deny =',
        'lxc.cgroup2.devices.allow = a',
        'lxc.idmap = u 0 100000 65536',
        'lxc.idmap = g 0 100000 65536',
    );
}

# Only for controllers that this kernel offers in cgroup2; PVE demands them all.
sub limits {
    open(my $in, '<', '/sys/fs/cgroup/cgroup.controllers') or return ();
    my %have = map { $_ => 1 } split ' ', <$in> // '';
    my @limits;
    push @limits, 'lxc.cgroup2.memory.max = ' . $options->{memory} * 2**20 if $have{memory} && $options->{memory};
    push @limits, 'lxc.cgroup2.cpu.max = ' . int(100_000 * $options->{cpulimit}) . ' 100000'
        if $have{cpu} && $options->{cpulimit};
    return @limits;
}

# `dev[n]`: nodes made at start in a directory of their own, bound into the container, allowed without mknod.
sub passthrough {
    my (@lines, @record);
    my $owner = $unprivileged ? 100_000 : 0;
    mkdir "$dir/passthrough";
    for my $key (sort grep { /^dev\d+$/ } keys %$options) {
        my ($path, @settings) = split /,/, $options->{$key};
        $path =~ s/^path=//;
        my %set = map { split /=/, $_, 2 } @settings;
        my @stat = stat($path) or die "$key: $path does not exist\n";
        # How Linux packs a device number: include/linux/kdev_t.h, new_encode_dev().
        my ($major, $minor) = (($stat[6] >> 8) & 0xfff, ($stat[6] & 0xff) | (($stat[6] >> 12) & 0xfff00));
        my $name = $path =~ s{^/dev/}{}r;
        my $node = "$dir/passthrough/" . ($name =~ tr{/}{-}r);
        unlink $node;
        system('mknod', '-m', $set{mode} // '0660', $node, 'c', $major, $minor) == 0 or die "$key: mknod failed\n";
        chown $owner + ($set{uid} // 0), $owner + ($set{gid} // 0), $node;
        my $access = $set{'deny-write'} ? 'r' : 'rw';
        push @lines, "lxc.cgroup2.devices.allow = c $major:$minor $access";
        push @lines, "lxc.mount.entry = $node dev/$name none bind,create=file";
        push @record, "c:$major:$minor:$path\n";
    }
    open(my $out, '>', "$dir/passthrough/devices") or die "$dir/passthrough/devices: $!\n";
    print $out @record;
    return @lines;
}

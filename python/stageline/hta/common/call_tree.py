"""A forest of calls as nodes by index, and the ways through it. Both of HTA's call stacks are built on it."""
from .constants import NON_EXISTENT_NODE_INDEX, NULL_NODE_INDEX


class CallTree:
    """self.nodes: {index: node with parent and children}; indices below 0 are roots."""
    nodes = None

    def get_nodes(self):
        return self.nodes

    def get_parent(self, idx):
        return self.nodes[idx].parent if idx in self.nodes else NON_EXISTENT_NODE_INDEX

    def get_children(self, idx):
        return self.nodes[idx].children if idx in self.nodes else []

    def get_root(self, idx):
        """The root above; of a node that is not there NULL_NODE_INDEX."""
        if idx not in self.nodes:
            return NULL_NODE_INDEX
        while idx >= 0:
            idx = self.nodes[idx].parent
        return idx

    def get_path_to_root(self, idx):
        """From the node to its root, both included."""
        path = []
        while idx in self.nodes:
            path.append(idx)
            if idx < 0:
                break
            idx = self.nodes[idx].parent
        return path

    def _walk(self, node):
        """(node, whether it is entered), depth first, without recursion: stacks of Python code are deep."""
        work = [(node, True)]
        while work:
            at, enters = work.pop()
            yield at, enters
            if enters:
                work.append((at, False))
                work.extend((child, True) for child in reversed(self.nodes[at].children))

    def get_paths_to_leaves(self, idx):
        paths, path = [], []
        for at, enters in self._walk(idx) if idx in self.nodes else ():
            if not enters:
                path.pop()
                continue
            path.append(at)
            if not self.nodes[at].children:
                paths.append(list(path))
        return paths

    def get_leaf_nodes(self, idx):
        return [path[-1] for path in self.get_paths_to_leaves(idx)]

    def _below(self, idx):
        """Returns all nodes below, without the node."""
        return [at for at, enters in self._walk(idx) if enters and at != idx] if idx in self.nodes else []

    def dfs_traverse(self, enter_func, exit_func):
        """Calls enter_func(index, node) and exit_func(index, node) from the root."""
        for at, enters in list(self._walk(self.root_index)):
            (enter_func if enters else exit_func)(at, self.nodes[at])

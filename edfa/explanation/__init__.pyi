from .necessity import Support as Support
from .necessity import Sweep as Sweep
from .necessity import necessity as necessity
from .necessity import sufficiency as sufficiency
from .necessity import sweep as sweep
from .partition import Partition as Partition
from .partition import explain as explain
from .partition import latent_recourse as latent_recourse

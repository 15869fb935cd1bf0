from .latent import latent_recourse as latent_recourse
from .necessity import Sweep as Sweep
from .necessity import necessity as necessity
from .necessity import sweep as sweep
from .partition import Partition as Partition
from .partition import explain as explain
from .sufficiency import sufficiency as sufficiency
from .support import Support as Support
